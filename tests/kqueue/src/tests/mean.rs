//! Tests of the mean mode. A process is in one mode, so they run in a process of their own.

use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::process::Command;

use super::*;

/// What each event of a filter has in this mode.
const KEPT: u16 = EV_ADD | EV_RECEIPT;

#[test]
fn the_mean_mode_does_what_the_kernels_do() {
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    let tests = tests.env("MINI_KQUEUE_MEAN", "1").args(["--ignored", "--test-threads=1", module]).output().unwrap();
    let text = String::from_utf8_lossy(&tests.stdout);
    assert!(tests.status.success() && text.contains("7 passed"), "{text}");
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn reset(socket: TcpStream) {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let (value, len) = ((&raw const at_once).cast(), size_of_val(&at_once) as u32);
    // SAFETY: an option of this length, which outlives the call.
    unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, len) };
}

#[test]
#[ignore = "run by `the_mean_mode_does_what_the_kernels_do`"]
fn ending_the_writing_of_tcp_again_ends_the_reading() {
    let (mut client, mut server) = tcp_pair();
    client.shutdown(Shutdown::Write).unwrap();
    server.write_all(b"one").unwrap();
    client.read_exact(&mut [0; 3]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 3]).unwrap(), 0, "the peer has not ended");

    let (a, mut b) = UnixStream::pair().unwrap();
    a.shutdown(Shutdown::Write).unwrap();
    a.shutdown(Shutdown::Write).unwrap();
    b.write_all(b"one").unwrap();
    (&a).read_exact(&mut [0; 3]).unwrap();
}

#[test]
#[ignore = "run by `the_mean_mode_does_what_the_kernels_do`"]
fn ending_the_writing_after_a_reset_is_invalid() {
    let (mut client, server) = tcp_pair();
    reset(server);
    client.read(&mut [0]).unwrap_err();
    assert_eq!(client.shutdown(Shutdown::Write).unwrap_err().raw_os_error(), Some(libc::EINVAL));
}

#[test]
#[ignore = "run by `the_mean_mode_does_what_the_kernels_do`"]
fn a_writer_is_told_of_the_missing_reader_by_the_other_filter() {
    let queue = Queue::new();
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(&[0; 1 << 16]).unwrap();
    queue.add(&writer, EVFILT_READ);
    queue.add(&writer, EVFILT_WRITE);
    assert_eq!(queue.now(), [], "it is full");
    drop(reader);
    assert_eq!(queue.now(), [(EVFILT_READ, EV_EOF | KEPT)]);

    let (reader, writer) = pipe().unwrap();
    drop(reader);
    assert_eq!(queue.change(event(writer.as_raw_fd() as usize, EVFILT_WRITE, ADD)), Err(libc::EBADF));
}

#[test]
#[ignore = "run by `the_mean_mode_does_what_the_kernels_do`"]
fn a_socket_that_has_ended_its_writing_hears_so() {
    let queue = Queue::new();
    let (a, _b) = tcp_pair();
    queue.add(&a, EVFILT_READ);
    queue.add(&a, EVFILT_WRITE);
    assert_eq!(queue.now(), [(EVFILT_WRITE, KEPT)]);
    a.shutdown(Shutdown::Write).unwrap();
    assert_eq!(queue.now(), [(EVFILT_WRITE, EV_EOF | KEPT)]);
    // The number may be another socket's next.
    let number = a.as_raw_fd();
    drop(a);
    let next = [(); 4].map(|()| UnixStream::pair().unwrap());
    let next = next.iter().flat_map(|(a, b)| [a, b]).find(|a| a.as_raw_fd() == number).unwrap();
    queue.add(next, EVFILT_WRITE);
    assert_eq!(queue.now(), [(EVFILT_WRITE, KEPT)]);
}

#[test]
#[ignore = "run by `the_mean_mode_does_what_the_kernels_do`"]
fn a_receiver_makes_no_room_for_udp() {
    let queue = Queue::new();
    let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    queue.add(&a, EVFILT_WRITE);
    assert_eq!(queue.now(), [(EVFILT_WRITE, KEPT)]);
    a.send_to(b"x", b.local_addr().unwrap()).unwrap();
    b.recv(&mut [0]).unwrap();
    assert_eq!(queue.now(), []);
}

#[test]
#[ignore = "run by `the_mean_mode_does_what_the_kernels_do`"]
fn enabling_tells_anew() {
    let (queue, (a, mut b)) = (Queue::new(), pair());
    b.write_all(b"x").unwrap();
    queue.add(&a, EVFILT_READ);
    assert_eq!(queue.now(), [(EVFILT_READ, KEPT)]);
    assert_eq!(queue.now(), []);
    queue.change(event(a.as_raw_fd() as usize, EVFILT_READ, EV_ENABLE)).unwrap();
    assert_eq!(queue.now(), [(EVFILT_READ, KEPT)]);
}

#[test]
#[ignore = "run by `the_mean_mode_does_what_the_kernels_do`"]
fn events_have_a_number_that_says_nothing() {
    let (queue, (a, _b)) = (Queue::new(), pair());
    queue.add(&a, EVFILT_WRITE);
    queue.change(event(7, EVFILT_USER, ADD)).unwrap();
    queue.change(trigger(7)).unwrap();
    let told = queue.call(&[], 4, Some(Duration::ZERO)).unwrap();
    assert!(told.len() == 2 && told.iter().all(|event| event.data != 0 && event.flags & KEPT == KEPT), "{told:?}");
}
