//! Errors of calls that set something up: each names its operation and object, and keeps kind and number.

use std::fs as std_fs;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use mini::fs::{self, File};
use mini::io::{Object, OperationError, raw_os_error};
use mini::net::unix::pipe;
use mini::net::{
    TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixSeqpacket, UnixStream, lookup_host,
    next_connection,
};
use mini::process::Command;
use mini::runtime::Runtime;
use mini::signal::unix::{SignalKind, signal};
use mini_tests::in_child;
use mini_tests::net_support::{ScratchPath, fifo, in_each_runtime, in_each_world, refusing_port};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, getrlimit, setrlimit, waitpid};

/// The whole text, the kind and the number of the error of `result`, as the system's error has them.
#[track_caller]
fn expect<T>(result: io::Result<T>, doing: &str, number: Errno) -> Object {
    let error = result.err().expect("it fails");
    let plain = io::Error::from_raw_os_error(number.raw_os_error());
    let limit = match getrlimit(Resource::Nofile).current {
        Some(limit) if number == Errno::MFILE => format!("; the limit is RLIMIT_NOFILE = {limit}"),
        _ => String::new(),
    };
    assert_eq!(error.to_string(), format!("failed to {doing}: {plain}{limit}"));
    assert_eq!(format!("{:?}", OperationError::of(&error).unwrap()), format!("{:?}", error.to_string()));
    assert_eq!((error.kind(), raw_os_error(&error)), (plain.kind(), plain.raw_os_error()));
    let details = OperationError::of(&error).expect("it has details");
    assert!(doing.starts_with(details.operation()));
    assert_eq!(details.io_error().raw_os_error(), plain.raw_os_error());
    assert_eq!(error.raw_os_error(), None, "as documented");
    details.object().clone()
}

/// As `expect`, for calls that mini refuses by itself.
#[track_caller]
fn expect_invalid<T>(result: io::Result<T>, text: &str) {
    let error = result.err().expect("it fails");
    assert_eq!((error.kind(), raw_os_error(&error)), (io::ErrorKind::InvalidInput, None), "{error}");
    assert!(error.to_string().starts_with(text), "{error}");
    assert!(OperationError::of(&error).is_some());
}

#[test]
fn an_ip_socket_that_cannot_be_set_up_names_the_address() {
    in_each_world(|| async {
        let (_kept, refused) = refusing_port();
        let object = expect(TcpStream::connect(refused).await, &format!("connect to {refused}"), Errno::CONNREFUSED);
        assert_eq!(object, Object::Address(refused));
        let socket = TcpSocket::new_v4().unwrap();
        expect(socket.connect(refused).await, &format!("connect to {refused}"), Errno::CONNREFUSED);

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let taken = listener.local_addr().unwrap();
        expect(TcpListener::bind(taken).await, &format!("bind to {taken}"), Errno::ADDRINUSE);
        expect(TcpListener::bind_reuse_port(taken).await, &format!("bind to {taken}"), Errno::ADDRINUSE);
        expect(TcpSocket::new_v4().unwrap().bind(taken), &format!("bind to {taken}"), Errno::ADDRINUSE);

        let [first, second] = [(); 2].map(|()| TcpSocket::new_v4().unwrap());
        first.set_reuseaddr(true).unwrap();
        second.set_reuseaddr(true).unwrap();
        first.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let shared = first.local_addr().unwrap();
        second.bind(shared).unwrap();
        let _first = first.listen(1).unwrap();
        expect(second.listen(1), &format!("listen on {shared}"), Errno::ADDRINUSE);

        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let taken = udp.local_addr().unwrap();
        expect(UdpSocket::bind(taken).await, &format!("bind to {taken}"), Errno::ADDRINUSE);
        let v6: SocketAddr = "[::1]:80".parse().unwrap();
        expect(udp.connect(v6).await, "connect to [::1]:80", Errno::AFNOSUPPORT);
    });
}

#[test]
fn an_option_that_is_refused_names_itself_and_the_socket() {
    in_each_world(|| async {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let fd = udp.as_raw_fd();
        let ttl = udp.set_ttl(1000);
        assert_eq!(expect(ttl, &format!("set `ttl` of descriptor {fd}"), Errno::INVAL), Object::Fd(fd));
        expect(udp.only_v6(), &format!("get `only_v6` of descriptor {fd}"), Errno::OPNOTSUPP);
    });
}

#[test]
fn a_host_that_is_not_found_is_named() {
    in_each_world(|| async {
        // Reserved to never exist: RFC 6761, section 6.4.
        let error = lookup_host("nobody.invalid:80").await.unwrap_err();
        assert!(error.to_string().starts_with("failed to look up `nobody.invalid`: "), "{error}");
        assert_eq!(OperationError::of(&error).unwrap().object(), &Object::Host("nobody.invalid".to_owned()));
        let error = TcpListener::bind("nobody.invalid:80").await.unwrap_err();
        assert!(error.to_string().starts_with("failed to look up `nobody.invalid`: "), "{error}");

        expect_invalid(TcpStream::connect("nowhere").await, "failed to look up `nowhere`: not an address");
        expect_invalid(TcpStream::connect(&[][..]).await, "failed to look up the host: the name has no address");
    });
}

// Not in simulations: a path is no file there.
#[test]
fn a_unix_socket_that_cannot_be_set_up_names_the_path() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("errors");
        let shown = path.as_ref().display().to_string();
        let connect = format!("connect to `{shown}`");
        let object = expect(UnixStream::connect(&path).await, &connect, Errno::NOENT);
        assert_eq!(object, Object::Path(path.as_ref().to_owned()));
        expect(UnixSeqpacket::connect(&path).await, &connect, Errno::NOENT);
        expect(UnixDatagram::unbound().unwrap().connect(&path), &connect, Errno::NOENT);

        let listener = UnixListener::bind(&path).unwrap();
        expect(UnixListener::bind(&path), &format!("bind to `{shown}`"), Errno::ADDRINUSE);
        expect(UnixDatagram::bind(&path), &format!("bind to `{shown}`"), Errno::ADDRINUSE);
        drop(listener);
        let error = UnixListener::bind(&path).unwrap_err();
        assert_eq!(OperationError::of(&error).unwrap().path(), Some(path.as_ref()));

        let long = "x".repeat(200);
        expect_invalid(UnixListener::bind(&long), &format!("failed to bind to `{long}`: "));
        expect_invalid(
            UnixStream::connect("a\0b").await,
            "failed to connect to `a\0b`: a socket path must not contain a zero byte",
        );
        expect_invalid(UnixListener::bind(""), "failed to bind to ``: a socket path must not be empty");
        let unnamed = UnixDatagram::unbound().unwrap().local_addr().unwrap();
        expect_invalid(UnixStream::connect_addr(&unnamed).await, "failed to connect to an unnamed address: ");
        let socket = UnixDatagram::unbound().unwrap();
        expect_invalid(socket.send_to(b"x", &long).await, &format!("failed to send to `{long}`: "));
        expect_invalid(socket.try_send_to_addr(b"x", &unnamed), "failed to send to an unnamed address: ");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn an_abstract_name_is_told_as_it_was_given() {
    use std::os::linux::net::SocketAddrExt;

    mini::block_on(async {
        let name = format!("mini-errors-{}", std::process::id());
        let addr = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let doing = format!("connect to the abstract name `{name}`");
        let object = expect(UnixStream::connect_addr(&addr).await, &doing, Errno::CONNREFUSED);
        assert_eq!(object, Object::AbstractName(name.into_bytes()));
    });
}

#[test]
fn a_pipe_that_cannot_be_opened_names_the_path() {
    in_each_world(|| async {
        let missing = ScratchPath::new("errors-fifo");
        let open = format!("open `{}`", missing.as_ref().display());
        expect(pipe::OpenOptions::new().open_receiver(&missing), &open, Errno::NOENT);
        let path = fifo();
        let open = format!("open `{}`", path.as_ref().display());
        expect(pipe::OpenOptions::new().open_sender(&path), &open, Errno::NXIO);
        expect_invalid(
            pipe::OpenOptions::new().open_receiver("/dev/null"),
            "failed to open `/dev/null`: it is not a FIFO",
        );
    });
}

#[test]
fn without_descriptors_the_error_says_what_was_to_be_made() {
    let _ = in_child("without_descriptors_the_error_says_what_was_to_be_made", || {
        mini::block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let path = ScratchPath::new("errors-accept");
            let unix = UnixListener::bind(&path).unwrap();
            let _clients = (
                TcpStream::connect(listener.local_addr().unwrap()).await.unwrap(),
                UnixStream::connect(&path).await.unwrap(),
            );
            let limit = getrlimit(Resource::Nofile);
            setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: limit.maximum }).unwrap();
            let addr: SocketAddr = "127.0.0.1:80".parse().unwrap();
            let at = listener.local_addr().unwrap();
            let object = expect(listener.accept().await, &format!("accept a connection on {at}"), Errno::MFILE);
            assert_eq!(object, Object::Address(at));
            expect(listener.try_accept(), &format!("accept a connection on {at}"), Errno::MFILE);
            expect(unix.accept().await, &format!("accept a connection on `{}`", path.as_ref().display()), Errno::MFILE);
            expect(Runtime::new(), "start a runtime", Errno::MFILE);
            expect(TcpListener::bind(addr).await, "bind to 127.0.0.1:80", Errno::MFILE);
            expect(TcpStream::connect(addr).await, "connect to 127.0.0.1:80", Errno::MFILE);
            expect(UdpSocket::bind(addr).await, "bind to 127.0.0.1:80", Errno::MFILE);
            assert_eq!(expect(TcpSocket::new_v4(), "make a TCP socket", Errno::MFILE), Object::Nothing);
            expect(UnixDatagram::unbound(), "make a Unix socket", Errno::MFILE);
            expect(UnixStream::pair(), "make a pair of Unix sockets", Errno::MFILE);
            expect(UnixStream::connect("/nowhere").await, "connect to `/nowhere`", Errno::MFILE);
            expect(pipe::pipe(), "make a pipe", Errno::MFILE);
            expect(signal(SignalKind::hangup()), "listen to signal 1", Errno::MFILE);
            expect(fs::read("/dev/null").await, "read `/dev/null`", Errno::MFILE);
            setrlimit(Resource::Nofile, limit).unwrap();
        });
    });
}

// Not in simulations: child processes are not simulated.
#[test]
fn a_process_that_cannot_be_started_or_awaited_is_named() {
    in_each_runtime(|| async {
        let object = expect(Command::new("/no/such/program").spawn(), "start `/no/such/program`", Errno::NOENT);
        assert_eq!(object, Object::Program { name: "/no/such/program".into(), directory: None });
        let nowhere = Command::new("true").current_dir("/no/such/place").output().await;
        expect(nowhere, "start `true` in `/no/such/place`", Errno::NOENT);

        let mut child = Command::new("true").spawn().unwrap();
        let id = child.id().unwrap();
        waitpid(Pid::from_raw(id as i32), WaitOptions::empty()).unwrap();
        let object = expect(child.wait().await, &format!("wait for process {id}"), Errno::CHILD);
        assert_eq!(object, Object::Process(id));
        expect(child.try_wait(), &format!("wait for process {id}"), Errno::CHILD);
    });
}

#[test]
fn a_signal_that_cannot_be_listened_to_is_named() {
    in_each_world(|| async {
        assert_eq!(
            expect(signal(SignalKind::from_raw(1000)), "listen to signal 1000", Errno::INVAL),
            Object::Signal(1000)
        );
        expect_invalid(signal(SignalKind::from_raw(9)), "failed to listen to signal 9: ");
    });
}

// Not in simulations: a simulated file has no descriptor.
#[test]
fn a_file_names_its_path_or_else_its_descriptor() {
    in_each_runtime(|| async {
        expect(File::open("/no/such/file").await, "open `/no/such/file`", Errno::NOENT);
        expect(fs::read("").await, "read ``", Errno::NOENT);
        let renamed = fs::rename("/no/such/file", "/tmp/other").await;
        let object = expect(renamed, "rename `/no/such/file` to `/tmp/other`", Errno::NOENT);
        assert!(matches!(object, Object::Paths { to, .. } if to == Path::new("/tmp/other")));

        let path = ScratchPath::new("errors-file");
        std_fs::write(&path, "x").unwrap();
        let mut file = File::from_std(std_fs::File::open(&path).unwrap());
        let fd = file.as_raw_fd();
        let object = expect(file.write(b"x").await, &format!("write descriptor {fd}"), Errno::BADF);
        assert_eq!(object, Object::Fd(fd));
        expect(file.set_len(1).await, &format!("set the length of descriptor {fd}"), Errno::INVAL);
    });
}

// Not in simulations: a simulated socket cannot leave.
#[test]
fn a_socket_that_does_not_listen_is_named_by_its_accept() {
    in_each_runtime(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = socket.local_addr().unwrap();
        let listener = TcpListener::from_std(OwnedFd::from(socket.into_std().unwrap()).into()).unwrap();
        expect(listener.accept().await, &format!("accept a connection on {at}"), Errno::INVAL);
        expect(next_connection(&listener).await, &format!("accept a connection on {at}"), Errno::INVAL);
    });
}

#[test]
fn what_moves_data_has_the_error_of_the_system() {
    in_each_world(|| async {
        let (a, _b) = UnixStream::pair().unwrap();
        let error = a.try_read(&mut [0; 8]).unwrap_err();
        assert_eq!((error.kind(), OperationError::of(&error).is_some()), (io::ErrorKind::WouldBlock, false));
        a.shutdown(Shutdown::Write).unwrap();
        let error = a.write(b"x").await.unwrap_err();
        assert_eq!((error.raw_os_error(), raw_os_error(&error)), (Some(32), Some(32)), "EPIPE");
    });
}

#[test]
fn the_number_is_found_in_the_error_of_a_copy() {
    mini::block_on(async {
        let (a, _b) = UnixStream::pair().unwrap();
        a.shutdown(Shutdown::Write).unwrap();
        let (mut from, to) = UnixStream::pair().unwrap();
        to.write_all(b"x").await.unwrap();
        drop(to);
        let error = mini::io::copy(&mut from, &mut &a).await.unwrap_err();
        assert_eq!((error.raw_os_error(), raw_os_error(&error)), (None, Some(32)), "{error}");
    });
}
