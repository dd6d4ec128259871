//! What must not leak: open descriptors into child processes, bytes of one connection into another.

#![cfg(target_os = "linux")]

use std::any::Any;
use std::collections::BTreeMap;
use std::fs;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::pin;
use std::process::{Command as StdCommand, Stdio};

use mini::fs::{File, OpenOptions, read_dir};
use mini::io::{AsyncFd, copy_bidirectional, stderr, stdout};
use mini::net::unix::pipe;
use mini::net::{TcpListener, TcpSocket, UdpSocket, UnixDatagram, UnixListener, UnixSeqpacket, UnixStream};
use mini::signal::unix::{SignalKind, signal};
use mini_tests::child_support::cat;
use mini_tests::net_support::{ScratchDir, connected_to, in_each_runtime, tcp_pair};
use mini_tests::{Counts, in_child, multi_thread, poll_with, until};

/// Things that hold descriptors.
type Held = Vec<Box<dyn Any>>;

/// The open descriptors of this process, by number: what each is, and whether a child inherits it.
fn descriptors() -> BTreeMap<u32, (String, bool)> {
    /// `O_CLOEXEC` as proc(5) writes it.
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let number: u32 = entry.file_name().to_str().unwrap().parse().unwrap();
        let (target, info) = (fs::read_link(entry.path()), format!("/proc/self/fdinfo/{number}"));
        // Leaves out the descriptor that reads the directory, and those with which a runtime's monitor may look at a
        // thread's state.
        let Some(target) = target.ok().filter(|target| !target.ends_with("fd") && !target.ends_with("stat")) else {
            continue;
        };
        let info = fs::read_to_string(info).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
        let is_inherited = u32::from_str_radix(flags, 8).unwrap() & CLOSE_ON_EXEC == 0;
        found.insert(number, (target.to_str().unwrap().to_owned(), is_inherited));
    }
    found
}

async fn open_sockets(dir: &Path, held: &mut Held) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    held.push(Box::new(connected_to(&listener).await));
    held.push(Box::new((listener, TcpSocket::new_v4().unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap())));
    let listener = UnixListener::bind(dir.join("socket")).unwrap();
    let client = UnixStream::connect(dir.join("socket")).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    held.push(Box::new((listener, client, server)));
    held.push(Box::new((UnixDatagram::pair().unwrap(), UnixDatagram::unbound().unwrap())));
    held.push(Box::new(UnixSeqpacket::pair().unwrap()));
    // The descriptors that came with a message.
    let (a, b) = UnixStream::pair().unwrap();
    let (sender, receiver) = pipe::pipe().unwrap();
    a.send_fds(b"x", &[receiver.as_fd()]).await.unwrap();
    held.push(Box::new((b.recv_fds(&mut [0; 1], 1).await.unwrap(), a, b, sender, receiver)));
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("fifo"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let receiver = pipe::OpenOptions::new().open_receiver(dir.join("fifo")).unwrap();
    held.push(Box::new((pipe::OpenOptions::new().open_sender(dir.join("fifo")).unwrap(), receiver)));
}

async fn open_files(dir: &Path, held: &mut Held) {
    let written = File::create(dir.join("file")).await.unwrap();
    let appended = OpenOptions::new().append(true).open(dir.join("file")).await.unwrap();
    held.push(Box::new((written, appended, File::open(dir.join("file")).await.unwrap())));
    held.push(Box::new(read_dir(dir).await.unwrap()));
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    held.push(Box::new((AsyncFd::new(a).unwrap(), b)));
}

async fn start_child(held: &mut Held) {
    let mut child = cat().stderr(Stdio::piped()).spawn().unwrap();
    // The child is waited for, so that it is watched. A wait closes its stdin, and then the child would end.
    let stdin = child.stdin.take();
    assert!(poll_with(&mut pin!(child.wait()), &Counts::new()).is_pending());
    held.push(Box::new((child, stdin, signal(SignalKind::user_defined1()).unwrap())));
}

/// A copy that is stuck with data in its pipe.
async fn start_copy(held: &mut Held) {
    let ((a, near), (far, b)) = (tcp_pair().await, tcp_pair().await);
    let pipes = || descriptors().values().filter(|(target, _)| target.starts_with("pipe:")).count();
    let before = pipes();
    let copy = mini::spawn(async move { copy_bidirectional(&mut &near, &mut &far).await });
    until(|| {
        while a.try_write(&[7; 1 << 16]).is_ok() {}
        pipes() > before
    })
    .await;
    held.push(Box::new((a, b, copy)));
}

#[test]
#[cfg_attr(mini_kqueue_shim, ignore = "a copy has no pipe there")]
fn a_child_inherits_nothing_that_mini_has_opened() {
    in_child("a_child_inherits_nothing_that_mini_has_opened", || {
        let before = descriptors();
        let dir = ScratchDir::new("security");
        let runtime = multi_thread(2).build().unwrap();
        runtime.block_on(async {
            let mut held = Held::new();
            open_sockets(dir.path(), &mut held).await;
            open_files(dir.path(), &mut held).await;
            start_child(&mut held).await;
            start_copy(&mut held).await;
            stdout().write_all(b"\n").await.unwrap();
            stderr().write_all(b"\n").await.unwrap();
            mini::spawn_blocking(|| ()).await.unwrap();

            let ours: BTreeMap<_, _> = descriptors().into_iter().filter(|(n, _)| !before.contains_key(n)).collect();
            for kind in ["eventpoll", "eventfd", "pidfd", "socket:", "pipe:", "/file", "/fifo"] {
                assert!(ours.values().any(|(target, _)| target.contains(kind)), "no {kind} in {ours:#?}");
            }
            let inherited: Vec<_> = ours.values().filter(|(_, is_inherited)| *is_inherited).collect();
            assert!(inherited.is_empty(), "children inherit {inherited:?}");

            // A child says so too, whether the standard library or mini starts it.
            let listing = "ls -l /proc/self/fd";
            let theirs = StdCommand::new("sh").args(["-c", listing]).stdin(Stdio::null()).output().unwrap();
            let own =
                mini::process::Command::new("sh").args(["-c", listing]).stdin(Stdio::null()).output().await.unwrap();
            for output in [theirs, own] {
                let text = String::from_utf8(output.stdout).unwrap();
                assert!(output.status.success() && text.contains(" 0 -> /dev/null"), "{text}");
                let seen = ours.values().find(|(target, _)| text.contains(&format!("-> {target}\n")));
                assert_eq!(seen, None, "a child has {text}");
            }
        });
    });
}

/// Fills what the kernel and a copy hold for a connection, and drops it there.
async fn leave_secrets(round: usize) {
    let ((a, near), (far, _b)) = (tcp_pair().await, tcp_pair().await);
    let (mut near, mut far) = (&near, &far);
    let mut copy = Box::pin(copy_bidirectional(&mut near, &mut far));
    // Rounds differ in how much of it is under way.
    for _ in 0..1 + round * 3 {
        let _ = a.try_write(&[0xaa; 100_000]);
        assert!(poll_with(&mut copy, &Counts::new()).is_pending());
        mini::task::yield_now().await;
    }
}

#[test]
fn a_copy_that_was_dropped_gives_nothing_to_the_next() {
    in_each_runtime(|| async {
        for round in 0..8 {
            leave_secrets(round).await;
            let ((a, near), (far, b)) = (tcp_pair().await, tcp_pair().await);
            let copy = mini::spawn(async move { copy_bidirectional(&mut &near, &mut &far).await });
            for length in [1, 100, 8 << 10, 300_000, 5] {
                let (sent, mut received) = (vec![0x11; length], vec![0; length]);
                futures_lite::future::zip(a.write_all(&sent), b.read_exact(&mut received)).await.0.unwrap();
                assert!(sent == received);
            }
            drop(a);
            assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 0);
            drop(b);
            copy.await.unwrap().unwrap();
        }
    });
}

#[test]
fn a_small_vectored_write_carries_nothing_of_the_one_before() {
    in_each_runtime(|| async {
        let (secret, [(a, b), (c, d)]) = ([0xaa; 255], [(); 2].map(|()| UnixStream::pair().unwrap()));
        for length in [0, 1, 3, 64, 200, 255] {
            a.write_vectored(&[IoSlice::new(&secret), IoSlice::new(&secret)]).await.unwrap();
            b.read_exact(&mut [0; 510]).await.unwrap();
            let sent = [0x11; 255];
            let parts = [IoSlice::new(b"<"), IoSlice::new(&sent[..length]), IoSlice::new(b">")];
            assert_eq!(c.write_vectored(&parts).await.unwrap(), length + 2);
            let mut buf = [0; 1024];
            assert_eq!(d.read(&mut buf).await.unwrap(), length + 2);
            assert!(buf.starts_with(&[b"<", &sent[..length], b">"].concat()));
            assert!(poll_with(&mut pin!(d.read(&mut buf)), &Counts::new()).is_pending());
        }
    });
}

#[test]
fn a_read_leaves_the_rest_of_the_buffer_as_it_was() {
    in_each_runtime(|| async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let (c, d) = tcp_pair().await;
        for length in [1500, 1, 700] {
            let (sent, mut bufs) = (vec![0xaa; length], [[0x55; 2000]; 2]);
            a.send(&sent).await.unwrap();
            assert_eq!(b.recv(&mut bufs[0]).await.unwrap(), length);
            c.write_all(&sent).await.unwrap();
            let mut read = 0;
            while read < length {
                read += d.read(&mut bufs[1][read..]).await.unwrap();
            }
            for buf in bufs {
                assert!(buf[..length] == sent && buf[length..].iter().all(|&byte| byte == 0x55));
            }
        }
    });
}
