//! What ends at once, well or with an error, and is called again and again: other tasks run meanwhile.

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::rc::Rc;

use mini::io::{AsyncFd, Interest};
use mini::net::unix::pipe;
use mini::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream, lookup_host};
use mini::process::Command;
use mini::runtime::Builder;
use mini::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot, watch};
use mini::task::{CancelToken, Group, JoinSet, Reason};
use mini::time::{Duration, Instant, interval, sleep, sleep_until, timeout};
use mini_tests::{LIMIT, within};

/// Calls that a program may make again and again before another task has run once. A budget has 128, and what is begun
/// by another thread takes its time.
const MANY: u32 = 200_000;

/// The most calls of those that take a millisecond each.
const FEW: u32 = 100;

/// Runs `$call` in a loop, until another task has run.
macro_rules! others_run_beside {
    ($what:literal $(, let $made:pat = $make:expr)* ; $call:expr) => {
        others_run_beside!($what, MANY $(, let $made = $make)* ; $call)
    };
    ($what:literal, $most:ident $(, let $made:pat = $make:expr)* ; $call:expr) => {{
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            $(let $made = $make;)*
            let has_run = Rc::new(Cell::new(false));
            let other = mini::task::spawn_local({
                let has_run = has_run.clone();
                async move { has_run.set(true) }
            });
            let mut calls = 0;
            while !has_run.get() {
                calls += 1;
                assert!(calls < $most, "{}: nobody else runs", $what);
                let _ = $call.await;
            }
            other.await.unwrap();
        });
    }};
}

fn fd(interest: Interest) -> AsyncFd<StdUnixStream> {
    AsyncFd::with_interest(StdUnixStream::pair().unwrap().0, interest).unwrap()
}

fn long_path() -> String {
    "x".repeat(200)
}

#[test]
fn errors_of_addresses_and_sockets() {
    within(LIMIT, || {
        let local = "127.0.0.1:0";
        others_run_beside!("a name without a port"; TcpStream::connect("example.org"));
        others_run_beside!("no address"; TcpStream::connect(&[][..]));
        others_run_beside!("a lookup"; lookup_host("example.org"));
        others_run_beside!("a bind"; TcpListener::bind("example.org"));
        others_run_beside!("a bind of udp"; UdpSocket::bind("example.org"));
        others_run_beside!("a datagram to a name without a port", let udp = UdpSocket::bind(local).await.unwrap();
            udp.send_to(b"x", "example.org"));
        others_run_beside!("a datagram to nobody", let udp = UdpSocket::bind(local).await.unwrap();
            udp.send_to(b"x", &[][..]));
        others_run_beside!("a datagram without a peer", let udp = UdpSocket::bind(local).await.unwrap();
            udp.send(b"x"));
        others_run_beside!("a long path"; UnixStream::connect(long_path()));
        others_run_beside!("no such path"; UnixStream::connect("/no/such/path"));
        others_run_beside!("a datagram to a long path", let unix = UnixDatagram::unbound().unwrap();
            unix.send_to(b"x", long_path()));
        others_run_beside!("a polled datagram to a long path", let unix = UnixDatagram::unbound().unwrap();
            poll_fn(|cx| unix.poll_send_to(cx, b"x", long_path())));
    });
}

#[test]
fn descriptors_that_do_not_wait_for_that() {
    within(LIMIT, || {
        let readable = Interest::READABLE;
        others_run_beside!("writable", let fd = fd(readable); fd.writable());
        others_run_beside!("async_io", let fd = fd(readable); fd.async_io(Interest::WRITABLE, |_| Ok(())));
        others_run_beside!("poll_write_ready", let fd = fd(readable);
            poll_fn(|cx| fd.poll_write_ready(cx).map(|ready| ready.map(drop))));
        others_run_beside!("readiness of a file", let file = std::fs::File::open("Cargo.toml").unwrap(),
            let pipe = pipe::Receiver::from_file_unchecked(file).unwrap();
            pipe.readable());
        others_run_beside!("reads of a file", let file = std::fs::File::open("Cargo.toml").unwrap(),
            let pipe = pipe::Receiver::from_file_unchecked(file).unwrap();
            pipe.read(&mut [0]));
    });
}

#[test]
fn streams_that_have_ended() {
    within(LIMIT, || {
        others_run_beside!("reads at the end", let (here, _) = UnixStream::pair().unwrap(); here.read(&mut [0]));
        others_run_beside!("readiness at the end", let (here, _) = UnixStream::pair().unwrap(); here.readable());
        others_run_beside!("writes to nobody", let (here, _) = UnixStream::pair().unwrap(); here.write(b"x"));
        others_run_beside!("a listener that is none",
            let listener = UnixListener::from_std({
                let listener = StdUnixStream::pair().unwrap().0;
                listener.set_nonblocking(true).unwrap();
                std::os::fd::OwnedFd::from(listener).into()
            }).unwrap();
            listener.accept());
        others_run_beside!("reads at the end of a file",
            let mut file = mini::fs::File::open("/dev/null").await.unwrap();
            file.read(&mut [0]));
        others_run_beside!("no such file"; mini::fs::read("/no/such/file"));
        others_run_beside!("a path with a nul"; mini::fs::read("\0"));
        others_run_beside!("the end of a directory", let mut entries = {
            let mut entries = mini::fs::read_dir(".").await.unwrap();
            while entries.next_entry().await.unwrap().is_some() {}
            entries
        }; entries.next_entry());
    });
}

#[test]
fn transfers_of_nothing() {
    within(LIMIT, || {
        others_run_beside!("read", let (here, _there) = UnixStream::pair().unwrap(); here.read(&mut []));
        others_run_beside!("read_exact", let (here, _there) = UnixStream::pair().unwrap(); here.read_exact(&mut []));
        others_run_beside!("write", let (here, _there) = UnixStream::pair().unwrap(); here.write(b""));
        others_run_beside!("write_all", let (here, _there) = UnixStream::pair().unwrap(); here.write_all(b""));
        others_run_beside!("write_all of a pipe", let (here, _there) = pipe::pipe().unwrap(); here.write_all(b""));
        others_run_beside!("read of a file", let mut file = mini::fs::File::open("Cargo.toml").await.unwrap();
            file.read(&mut []));
        others_run_beside!("read_exact of a file", let mut file = mini::fs::File::open("Cargo.toml").await.unwrap();
            file.read_exact(&mut []));
        others_run_beside!("write of a file", let mut file = mini::fs::File::open("Cargo.toml").await.unwrap();
            file.write(b""));
        others_run_beside!("write_all of a file", let mut file = mini::fs::File::open("Cargo.toml").await.unwrap();
            file.write_all(b""));
        others_run_beside!("flush of a file", let mut file = mini::fs::File::open("Cargo.toml").await.unwrap();
            file.flush());
        let (input, output) = (mini::io::stdin(), mini::io::stdout());
        others_run_beside!("read of stdin"; input.read(&mut []));
        others_run_beside!("write of stdout"; output.write(b""));
        others_run_beside!("write_all of stdout"; output.write_all(b""));
        others_run_beside!("flush of stdout"; output.flush());
    });
}

#[test]
fn child_processes_that_neither_start_nor_take() {
    within(LIMIT, || {
        let nowhere = || Command::new("/no/such/program");
        others_run_beside!("output", FEW; nowhere().output());
        others_run_beside!("status", FEW; nowhere().status());
        macro_rules! of_a_child {
            ($what:literal, $child:ident, $call:expr) => {
                others_run_beside!($what, let mut $child = {
                    let piped = std::process::Stdio::piped;
                    Command::new("cat").stdin(piped()).stdout(piped()).kill_on_drop(true).spawn().unwrap()
                }; $call);
            };
        }
        of_a_child!("write", child, child.stdin.as_mut().unwrap().write(b""));
        of_a_child!("write_all", child, child.stdin.as_mut().unwrap().write_all(b""));
        let closed = || async {
            let mut child = Command::new("true").stdin(std::process::Stdio::piped()).spawn().unwrap();
            futures_lite::AsyncWriteExt::close(child.stdin.as_mut().unwrap()).await.unwrap();
            child
        };
        others_run_beside!("write to a closed input", let mut child = closed().await;
            child.stdin.as_mut().unwrap().write(b"x"));
        others_run_beside!("write_all to a closed input", let mut child = closed().await;
            child.stdin.as_mut().unwrap().write_all(b"x"));
        of_a_child!("read", child, child.stdout.as_mut().unwrap().read(&mut []));
        of_a_child!("read_exact", child, child.stdout.as_mut().unwrap().read_exact(&mut []));
    });
}

#[test]
fn channels_that_are_closed() {
    within(LIMIT, || {
        others_run_beside!("mpsc recv", let (_, mut receiver) = mpsc::channel::<u8>(1); receiver.recv());
        others_run_beside!("unbounded recv", let (_, mut receiver) = mpsc::unbounded_channel::<u8>(); receiver.recv());
        others_run_beside!("recv_many", let (_, mut receiver) = mpsc::channel::<u8>(1);
            receiver.recv_many(&mut Vec::new(), 3));
        others_run_beside!("recv_many of none", let (_sender, mut receiver) = mpsc::channel::<u8>(1);
            receiver.recv_many(&mut Vec::new(), 0));
        others_run_beside!("mpsc send", let (sender, _) = mpsc::channel(1); sender.send(1));
        others_run_beside!("reserve", let (sender, _) = mpsc::channel::<u8>(1); sender.reserve());
        others_run_beside!("reserve_many", let (sender, _) = mpsc::channel::<u8>(1); sender.reserve_many(1));
        others_run_beside!("reserve_many of too many", let (sender, _receiver) = mpsc::channel::<u8>(1);
            sender.reserve_many(2));
        others_run_beside!("reserve_many of none", let (sender, _receiver) = mpsc::channel::<u8>(1);
            sender.reserve_many(0));
        others_run_beside!("mpsc closed", let (sender, _) = mpsc::channel::<u8>(1); sender.closed());
        others_run_beside!("a message that is never sent"; { let (_, receiver) = oneshot::channel::<u8>(); receiver });
        others_run_beside!("oneshot closed", let (mut sender, _) = oneshot::channel::<u8>(); sender.closed());
        others_run_beside!("watch changed", let (_, mut receiver) = watch::channel(1); receiver.changed());
        others_run_beside!("wait_for", let (_sender, mut receiver) = watch::channel(1); receiver.wait_for(|_| true));
        others_run_beside!("watch closed", let (sender, _) = watch::channel(1); sender.closed());
        others_run_beside!("broadcast recv", let (_, mut receiver) = broadcast::channel::<u8>(1); receiver.recv());
        others_run_beside!("a closed semaphore",
            let permits = { let permits = Semaphore::new(1); permits.close(); permits };
            permits.acquire());
    });
}

#[test]
fn locks_that_are_free() {
    within(LIMIT, || {
        others_run_beside!("lock", let mutex = Mutex::new(()); mutex.lock());
        others_run_beside!("read", let lock = RwLock::new(()); lock.read());
        others_run_beside!("write", let lock = RwLock::new(()); lock.write());
        others_run_beside!("acquire", let permits = Semaphore::new(1); permits.acquire());
        others_run_beside!("acquire none", let permits = Semaphore::new(0); permits.acquire_many(0));
        others_run_beside!("notified", let notify = Notify::new(); { notify.notify_one(); notify.notified() });
        others_run_beside!("a barrier of one", let barrier = Barrier::new(1); barrier.wait());
        others_run_beside!("a cell that fails", let cell = OnceCell::<u8>::new();
            cell.get_or_try_init(async || Err(())));
        others_run_beside!("a cell that has a value", let cell = OnceCell::new_with(Some(1));
            cell.get_or_init(async || 2));
        others_run_beside!("a cell that is set once", let cell = SetOnce::new_with(Some(1)); cell.wait());
    });
}

#[test]
fn times_that_have_passed() {
    within(LIMIT, || {
        others_run_beside!("sleep"; sleep(Duration::ZERO));
        others_run_beside!("sleep_until", let now = Instant::now(); sleep_until(now));
        others_run_beside!("a limit"; timeout(Duration::ZERO, pending::<()>()));
        others_run_beside!("a limit of what is ready", let mutex = Mutex::new(());
            timeout(Duration::from_secs(1), mutex.lock()));
        others_run_beside!("ticks", let mut ticks = {
            let ticks = interval(Duration::from_nanos(1));
            mini::time::pause();
            mini::time::advance(Duration::from_millis(100)).await;
            ticks
        }; ticks.tick());
    });
}

#[test]
fn tasks_that_have_ended() {
    within(LIMIT, || {
        others_run_beside!("a task", let task = {
            let task = mini::spawn(async {}).shared();
            task.clone().await.unwrap();
            task
        }; task.clone());
        others_run_beside!("a set of none", let mut tasks = JoinSet::<()>::new(); tasks.join_next());
        others_run_beside!("a group of none", let group = Group::new(); group.wait());
        others_run_beside!("a child", let mut child = {
            let mut child = Command::new("true").spawn().unwrap();
            child.wait().await.unwrap();
            child
        }; child.wait());
        others_run_beside!("a task that is refused", let group = {
            let group = Group::new();
            let _report = group.shutdown(Reason::Requested).await;
            group
        }; group.spawn(async {}));
        others_run_beside!("a shutdown of none", let group = Group::new(); group.clone().shutdown(Reason::Requested));
        others_run_beside!("all of a set of none"; JoinSet::<()>::new().join_all());
        others_run_beside!("a race"; async {
            mini::race! { _ = std::future::ready(()) => {}, _ = pending::<()>() => {} }
        });
    });
}

fn cancelled() -> CancelToken {
    let token = CancelToken::new();
    token.cancel(Reason::Requested);
    token
}

#[test]
fn tokens_that_are_cancelled() {
    within(LIMIT, || {
        others_run_beside!("cancelled", let token = cancelled(); token.cancelled());
        others_run_beside!("cancelled_owned", let token = cancelled(); token.clone().cancelled_owned());
        others_run_beside!("run", let token = cancelled(); token.run(pending::<()>()));
    });
}
