//! Errors: those of the system as they are; `bind` and `connect` also name the address.

use std::error::Error;
use std::fs as std_fs;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;

use mini::fs::{self, File};
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

/// The error of `result` is the system's.
#[track_caller]
fn expect_plain<T>(result: io::Result<T>, number: Errno) {
    let error = result.err().expect("it fails");
    assert_eq!(error.raw_os_error(), Some(number.raw_os_error()), "{error}");
}

/// The error of `result` says what failed; its kind is that of the system's error, which is its source.
#[track_caller]
fn expect<T>(result: io::Result<T>, doing: &str, number: Errno) {
    let error = result.err().expect("it fails");
    let plain = io::Error::from_raw_os_error(number.raw_os_error());
    assert_eq!((error.kind(), &*error.to_string()), (plain.kind(), &*format!("failed to {doing}: {plain}")));
    let payload = error.get_ref().expect("it has a text");
    assert_eq!(format!("{payload:?}"), format!("{:?}", error.to_string()));
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.and_then(io::Error::raw_os_error), plain.raw_os_error());
}

/// As `expect`, for calls that mini refuses by itself.
#[track_caller]
fn expect_invalid<T>(result: io::Result<T>, text: &str) {
    let error = result.err().expect("it fails");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().starts_with(text), "{error}");
}

#[test]
fn an_ip_socket_that_is_not_bound_or_connected_names_the_address() {
    in_each_world(|| async {
        let (_kept, refused) = refusing_port();
        expect(TcpStream::connect(refused).await, &format!("connect to {refused}"), Errno::CONNREFUSED);
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
        expect_plain(second.listen(1), Errno::ADDRINUSE);

        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let taken = udp.local_addr().unwrap();
        expect(UdpSocket::bind(taken).await, &format!("bind to {taken}"), Errno::ADDRINUSE);
        expect(UdpSocket::bind_with(taken, |_| Ok(())), &format!("bind to {taken}"), Errno::ADDRINUSE);
        let v6: SocketAddr = "[::1]:80".parse().unwrap();
        expect(udp.connect(v6).await, "connect to [::1]:80", Errno::AFNOSUPPORT);
    });
}

#[test]
fn an_option_has_the_error_of_the_system() {
    in_each_world(|| async {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        expect_plain(udp.set_ttl(1000), Errno::INVAL);
        expect_plain(udp.only_v6(), Errno::OPNOTSUPP);
    });
}

#[test]
fn a_host_that_is_not_found_is_named_by_bind_and_connect() {
    in_each_world(|| async {
        // Reserved to never exist: RFC 6761, section 6.4.
        let plain = lookup_host("nobody.invalid:80").await.unwrap_err().to_string();
        assert!(!plain.contains("nobody.invalid") || plain.contains("simulat"), "{plain}");
        for (error, doing) in [
            (TcpListener::bind("nobody.invalid:80").await.unwrap_err(), "bind to"),
            (TcpStream::connect("nobody.invalid:80").await.unwrap_err(), "connect to"),
            (UdpSocket::bind("nobody.invalid:80").await.unwrap_err(), "bind to"),
        ] {
            assert!(error.to_string().starts_with(&format!("failed to {doing} nobody.invalid:80: ")), "{error}");
        }
        expect_invalid(TcpStream::connect("nowhere").await, "`nowhere` is not an address: expected `host:port`");
        expect_invalid(TcpStream::connect(&[][..]).await, "the name has no address");
    });
}

// Not in simulations: a path is no file there.
#[test]
fn a_unix_socket_that_is_not_bound_or_connected_names_the_path() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("errors");
        let (bind, connect) = (format!("bind to {:?}", path.as_ref()), format!("connect to {:?}", path.as_ref()));
        expect(UnixStream::connect(&path).await, &connect, Errno::NOENT);
        expect(UnixSeqpacket::connect(&path).await, &connect, Errno::NOENT);
        expect(UnixDatagram::unbound().unwrap().connect(&path), &connect, Errno::NOENT);

        let listener = UnixListener::bind(&path).unwrap();
        let addr = listener.local_addr().unwrap();
        expect(UnixListener::bind(&path), &bind, Errno::ADDRINUSE);
        expect(UnixListener::bind_addr(&addr), &bind, Errno::ADDRINUSE);
        expect(UnixDatagram::bind(&path), &bind, Errno::ADDRINUSE);

        let long = "x".repeat(200);
        expect_invalid(UnixListener::bind(&long), &format!("{long:?} is not the address of a socket: "));
        expect_invalid(
            UnixStream::connect("a\0b").await,
            "\"a\\0b\" is not the address of a socket: a socket path must not contain a zero byte",
        );
        expect_invalid(UnixListener::bind(""), "\"\" is not the address of a socket: a socket path must not be empty");
        let unnamed = UnixDatagram::unbound().unwrap().local_addr().unwrap();
        expect_invalid(UnixStream::connect_addr(&unnamed).await, "an unnamed socket cannot be reached");
        let socket = UnixDatagram::unbound().unwrap();
        expect_invalid(socket.send_to(b"x", &long).await, &format!("{long:?} is not the address of a socket: "));
        expect_invalid(socket.try_send_to_addr(b"x", &unnamed), "an unnamed socket cannot be reached");
        expect_plain(socket.try_send_to(b"x", "/no/such/socket"), Errno::NOENT);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn an_abstract_name_is_told_as_it_was_given() {
    use std::os::linux::net::SocketAddrExt;

    mini::block_on(async {
        let name = format!("mini-errors-{}", std::process::id());
        let addr = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        expect(
            UnixStream::connect_addr(&addr).await,
            &format!("connect to the abstract name {name:?}"),
            Errno::CONNREFUSED,
        );
    });
}

#[test]
fn a_pipe_that_cannot_be_opened_has_the_error_of_the_system() {
    in_each_world(|| async {
        let missing = ScratchPath::new("errors-fifo");
        expect_plain(pipe::OpenOptions::new().open_receiver(&missing), Errno::NOENT);
        expect_plain(pipe::OpenOptions::new().open_sender(fifo()), Errno::NXIO);
        expect_invalid(pipe::OpenOptions::new().open_receiver("/dev/null"), "\"/dev/null\" is not a FIFO");
    });
}

#[test]
fn without_descriptors_the_error_has_the_number() {
    let _ = in_child("without_descriptors_the_error_has_the_number", || {
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
            expect_plain(listener.accept().await, Errno::MFILE);
            expect_plain(listener.try_accept(), Errno::MFILE);
            expect_plain(unix.accept().await, Errno::MFILE);
            expect_plain(Runtime::new(), Errno::MFILE);
            expect(TcpListener::bind(addr).await, "bind to 127.0.0.1:80", Errno::MFILE);
            expect(TcpStream::connect(addr).await, "connect to 127.0.0.1:80", Errno::MFILE);
            expect(UdpSocket::bind(addr).await, "bind to 127.0.0.1:80", Errno::MFILE);
            expect_plain(TcpSocket::new_v4(), Errno::MFILE);
            expect_plain(UnixDatagram::unbound(), Errno::MFILE);
            expect_plain(UnixStream::pair(), Errno::MFILE);
            expect(UnixStream::connect("/nowhere").await, "connect to \"/nowhere\"", Errno::MFILE);
            expect_plain(pipe::pipe(), Errno::MFILE);
            expect_plain(signal(SignalKind::hangup()), Errno::MFILE);
            expect_plain(fs::read("/dev/null").await, Errno::MFILE);
            setrlimit(Resource::Nofile, limit).unwrap();
        });
    });
}

// Not in simulations: child processes are not simulated.
#[test]
fn a_process_that_cannot_be_started_or_awaited_has_the_error_of_the_system() {
    in_each_runtime(|| async {
        expect_plain(Command::new("/no/such/program").spawn(), Errno::NOENT);
        expect_plain(Command::new("true").current_dir("/no/such/place").output().await, Errno::NOENT);

        let mut child = Command::new("true").spawn().unwrap();
        let id = child.id().unwrap();
        waitpid(Pid::from_raw(id as i32), WaitOptions::empty()).unwrap();
        expect_plain(child.wait().await, Errno::CHILD);
        expect_plain(child.try_wait(), Errno::CHILD);
    });
}

#[test]
fn a_signal_that_cannot_be_caught_is_named() {
    in_each_world(|| async {
        expect_plain(signal(SignalKind::from_raw(1000)), Errno::INVAL);
        expect_invalid(signal(SignalKind::from_raw(9)), "signal 9 cannot be caught");
    });
}

// Not in simulations: a simulated file has no descriptor.
#[test]
fn a_file_has_the_errors_of_the_system() {
    in_each_runtime(|| async {
        expect_plain(File::open("/no/such/file").await, Errno::NOENT);
        expect_plain(fs::read("").await, Errno::NOENT);
        expect_plain(fs::rename("/no/such/file", "/tmp/other").await, Errno::NOENT);

        let path = ScratchPath::new("errors-file");
        std_fs::write(&path, "x").unwrap();
        let mut file = File::from_std(std_fs::File::open(&path).unwrap());
        expect_plain(file.write(b"x").await, Errno::BADF);
        expect_plain(file.set_len(1).await, Errno::INVAL);
    });
}

// Not in simulations: a simulated socket cannot leave.
#[test]
fn a_socket_that_does_not_listen_accepts_nothing() {
    in_each_runtime(|| async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = TcpListener::from_std(OwnedFd::from(socket.into_std().unwrap()).into()).unwrap();
        expect_plain(listener.accept().await, Errno::INVAL);
        expect_plain(next_connection(&listener).await, Errno::INVAL);
    });
}

#[test]
fn what_moves_data_has_the_error_of_the_system() {
    in_each_world(|| async {
        let (a, _b) = UnixStream::pair().unwrap();
        expect_plain(a.try_read(&mut [0; 8]), Errno::AGAIN);
        a.shutdown(Shutdown::Write).unwrap();
        expect_plain(a.write(b"x").await, Errno::PIPE);
    });
}

#[test]
fn a_copy_has_the_error_of_the_system() {
    mini::block_on(async {
        let (a, _b) = UnixStream::pair().unwrap();
        a.shutdown(Shutdown::Write).unwrap();
        let (mut from, to) = UnixStream::pair().unwrap();
        to.write_all(b"x").await.unwrap();
        drop(to);
        expect_plain(mini::io::copy(&mut from, &mut &a).await, Errno::PIPE);
    });
}
