use std::io::{Read, Write, pipe};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::time::{Duration, Instant};

use super::*;

mod mean;

const ADD: u16 = EV_ADD | EV_CLEAR;
const ADD_AND_TELL: u16 = ADD | EV_RECEIPT;

/// A queue, with safe calls.
struct Queue(OwnedFd);

impl Queue {
    fn new() -> Queue {
        // SAFETY: always safe.
        let fd = unsafe { kqueue() };
        assert!(fd >= 0);
        // SAFETY: just made.
        Queue(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// As kevent(2); an error is the number of it.
    fn call(&self, changes: &[kevent], room: usize, limit: Option<Duration>) -> Result<Vec<kevent>, i32> {
        let mut events = vec![event(0, 0, 0); room];
        let limit = limit.map(|l| timespec { tv_sec: l.as_secs() as i64, tv_nsec: l.subsec_nanos().into() });
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (list, len) = (changes.as_ptr(), changes.len() as c_int);
        // SAFETY: both lists are as long as is said, and `limit` is null or lives until the end.
        let told = unsafe { kevent(self.0.as_raw_fd(), list, len, events.as_mut_ptr(), room as c_int, limit) };
        let told = usize::try_from(told).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap())?;
        events.truncate(told);
        Ok(events)
    }

    fn change(&self, change: kevent) -> Result<(), i32> {
        self.call(&[change], 0, None).map(drop)
    }

    fn add(&self, fd: impl AsFd, filter: i16) {
        self.change(event(fd.as_fd().as_raw_fd() as usize, filter, ADD)).unwrap();
    }

    /// What there is now, as filter and flags, without those that say nothing new.
    fn now(&self) -> Vec<(i16, u16)> {
        let events = self.call(&[], 16, Some(Duration::ZERO)).unwrap();
        let mut told: Vec<_> = events.iter().map(|event| (event.filter, event.flags & !EV_CLEAR)).collect();
        told.sort_unstable();
        told
    }
}

fn event(ident: usize, filter: i16, flags: u16) -> kevent {
    kevent { ident, filter, flags, fflags: 0, data: 0, udata: ptr::without_provenance_mut(ident + 100) }
}

fn trigger(ident: usize) -> kevent {
    kevent { fflags: NOTE_TRIGGER, ..event(ident, EVFILT_USER, 0) }
}

fn pair() -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    (a, b)
}

#[test]
fn what_is_so_already_is_told_once_and_then_every_change() {
    let (queue, (a, mut b)) = (Queue::new(), pair());
    b.write_all(b"before").unwrap();
    queue.add(&a, EVFILT_READ);
    let told = queue.call(&[], 4, None).unwrap();
    assert_eq!(told, [kevent { flags: EV_CLEAR, ..event(a.as_raw_fd() as usize, EVFILT_READ, 0) }]);
    assert_eq!(queue.now(), [], "nothing was read, but nothing has changed either");
    b.write_all(b"more").unwrap();
    b.write_all(b"still more").unwrap();
    assert_eq!(queue.now(), [(EVFILT_READ, 0)], "one event, however much came");
}

#[test]
fn without_clear_it_is_told_as_long_as_it_is_so() {
    let (queue, (mut a, mut b)) = (Queue::new(), pair());
    queue.change(event(a.as_raw_fd() as usize, EVFILT_READ, EV_ADD)).unwrap();
    b.write_all(b"x").unwrap();
    assert_eq!([queue.now(), queue.now()], [[(EVFILT_READ, 0)], [(EVFILT_READ, 0)]]);
    a.read_exact(&mut [0]).unwrap();
    assert_eq!(queue.now(), []);
}

#[test]
fn what_is_used_up_before_the_wait_is_not_told() {
    let (queue, (mut a, mut b)) = (Queue::new(), pair());
    queue.add(&a, EVFILT_READ);
    b.write_all(b"x").unwrap();
    a.read_exact(&mut [0]).unwrap();
    assert_eq!(queue.now(), []);
}

#[test]
fn the_filters_of_one_descriptor_are_apart() {
    let (queue, (mut a, mut b)) = (Queue::new(), pair());
    queue.add(&a, EVFILT_WRITE);
    assert_eq!(queue.now(), [(EVFILT_WRITE, 0)]);
    b.write_all(b"x").unwrap();
    assert_eq!(queue.now(), [], "that is to be read, which nobody has asked for");
    queue.add(&a, EVFILT_READ);
    assert_eq!(queue.now(), [(EVFILT_READ, 0)], "and nothing else");
    b.write_all(b"x").unwrap();
    assert_eq!(queue.now(), [(EVFILT_READ, 0)]);
    while a.write(&[0; 4096]).is_ok() {}
    b.set_nonblocking(true).unwrap();
    while b.read(&mut [0; 4096]).is_ok() {}
    assert_eq!(queue.now(), [(EVFILT_WRITE, 0)], "there is room again");
    queue.change(event(a.as_raw_fd() as usize, EVFILT_READ, EV_DELETE)).unwrap();
    b.write_all(b"x").unwrap();
    assert_eq!(queue.now(), []);
}

#[test]
fn the_end_of_a_connection_is_told_by_both_filters() {
    let (queue, (a, b)) = (Queue::new(), pair());
    queue.add(&a, EVFILT_READ);
    queue.add(&a, EVFILT_WRITE);
    assert_eq!(queue.now(), [(EVFILT_WRITE, 0)]);
    drop(b);
    assert_eq!(queue.now(), [(EVFILT_WRITE, EV_EOF), (EVFILT_READ, EV_EOF)]);
}

#[test]
fn half_an_end_is_one_of_reading() {
    let (queue, (a, b)) = (Queue::new(), pair());
    queue.add(&a, EVFILT_READ);
    queue.add(&a, EVFILT_WRITE);
    queue.now();
    b.shutdown(std::net::Shutdown::Write).unwrap();
    let told = queue.now();
    assert!(told.contains(&(EVFILT_READ, EV_EOF)), "{told:?}");
    assert!(!told.contains(&(EVFILT_WRITE, EV_EOF)), "{told:?}");
}

#[test]
fn a_refused_connection_is_an_end_with_a_reason() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) };
    // SAFETY: just made.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let to = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    // SAFETY: an address of this length.
    unsafe { libc::connect(fd, (&raw const to).cast(), size_of_val(&to) as u32) };
    let queue = Queue::new();
    queue.add(&socket, EVFILT_WRITE);
    let told = queue.call(&[], 1, None).unwrap()[0];
    assert!(told.flags & EV_EOF != 0 && told.fflags != 0, "{told:?}");
}

#[test]
fn the_ends_of_a_pipe_are_told() {
    let queue = Queue::new();
    let (reader, writer) = pipe().unwrap();
    queue.add(&reader, EVFILT_READ);
    drop(writer);
    assert_eq!(queue.now(), [(EVFILT_READ, EV_EOF)]);

    let (reader, writer) = pipe().unwrap();
    queue.add(&writer, EVFILT_WRITE);
    assert_eq!(queue.now(), [(EVFILT_WRITE, 0)]);
    drop(reader);
    assert_eq!(queue.now(), [(EVFILT_WRITE, EV_EOF)]);
}

#[test]
fn receipts_say_what_became_of_each_change_and_end_the_call() {
    let (queue, (a, b)) = (Queue::new(), pair());
    let closed = b.as_raw_fd() as usize;
    drop(b);
    let open = a.as_raw_fd() as usize;
    let changes = [
        event(open, EVFILT_WRITE, ADD_AND_TELL),
        event(closed, EVFILT_READ, ADD_AND_TELL),
        event(closed, EVFILT_READ, EV_DELETE | EV_RECEIPT),
        event(open, EVFILT_READ, EV_DELETE | EV_RECEIPT),
        event(open, EVFILT_READ, EV_RECEIPT),
    ];
    // Without a limit: it does not wait, and takes no event.
    let answers = queue.call(&changes, changes.len(), None).unwrap();
    assert!(answers.iter().all(|answer| answer.flags & EV_ERROR != 0));
    let errors: Vec<_> = answers.iter().map(|answer| answer.data as i32).collect();
    // Another test may have got the closed one's number.
    let (first, second) = (errors[1], errors[2]);
    assert!([libc::EBADF, libc::EPERM, 0].contains(&first), "{first}");
    assert!([libc::EBADF, libc::ENOENT, 0].contains(&second), "{second}");
    assert_eq!([errors[0], errors[3], errors[4]], [0, libc::ENOENT, libc::ENOENT]);
    assert!(queue.now().contains(&(EVFILT_WRITE, EV_EOF)), "the events are still there");
}

#[test]
fn an_error_without_room_for_it_is_one_of_the_call() {
    let (queue, (a, _b)) = (Queue::new(), pair());
    assert_eq!(queue.change(event(a.as_raw_fd() as usize, EVFILT_READ, EV_DELETE)), Err(libc::ENOENT));
    assert_eq!(queue.change(event(1 << 20, EVFILT_READ, ADD)), Err(libc::EBADF));
    assert_eq!(queue.change(trigger(7)), Err(libc::ENOENT), "nobody has added it");
    assert_eq!(queue.change(event(0, -3, ADD)), Err(libc::EINVAL), "no such filter");
    let unknown = 0x10;
    assert_eq!(queue.change(event(a.as_raw_fd() as usize, EVFILT_READ, ADD | unknown)), Err(libc::EINVAL));
}

#[test]
fn a_writer_without_a_reader_and_a_queue_to_be_written_to_are_refused() {
    let (queue, other) = (Queue::new(), Queue::new());
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    assert_eq!(queue.change(event(writer.as_raw_fd() as usize, EVFILT_WRITE, ADD)), Err(libc::EPIPE));
    assert_eq!(queue.change(event(other.0.as_raw_fd() as usize, EVFILT_WRITE, ADD)), Err(libc::EINVAL));
    queue.add(&other.0, EVFILT_READ);
}

#[test]
fn adding_again_exchanges_the_callers_word_and_tells_anew() {
    let (queue, (a, mut b)) = (Queue::new(), pair());
    b.write_all(b"x").unwrap();
    queue.add(&a, EVFILT_READ);
    queue.now();
    let udata = ptr::without_provenance_mut(5);
    queue.change(kevent { udata, ..event(a.as_raw_fd() as usize, EVFILT_READ, ADD) }).unwrap();
    let told = queue.call(&[], 4, Some(Duration::ZERO)).unwrap();
    assert_eq!(told.iter().map(|event| event.udata).collect::<Vec<_>>(), [udata]);
}

#[test]
fn enabling_asks_whether_a_filter_is_there_and_tells_nothing_anew() {
    let (queue, (a, mut b)) = (Queue::new(), pair());
    let enable = event(a.as_raw_fd() as usize, EVFILT_READ, EV_ENABLE);
    assert_eq!(queue.change(enable), Err(libc::ENOENT));
    queue.add(&a, EVFILT_READ);
    assert_eq!(queue.change(enable), Ok(()));
    b.write_all(b"more").unwrap();
    assert_eq!(queue.now(), [(EVFILT_READ, 0)]);
    assert_eq!(queue.change(enable), Ok(()));
    assert_eq!(queue.now(), [], "it still reports changes alone");
}

#[test]
fn triggers_are_one_event_until_it_is_taken() {
    let queue = Queue::new();
    queue.change(event(7, EVFILT_USER, ADD)).unwrap();
    assert_eq!(queue.now(), []);
    for _ in 0..3 {
        queue.change(trigger(7)).unwrap();
        queue.change(trigger(7)).unwrap();
        assert_eq!([queue.now(), queue.now()], [vec![(EVFILT_USER, 0)], vec![]]);
    }
    queue.change(event(7, EVFILT_USER, EV_DELETE)).unwrap();
    assert_eq!(queue.change(trigger(7)), Err(libc::ENOENT));
}

#[test]
fn a_trigger_ends_a_wait() {
    let queue = Queue::new();
    queue.change(event(7, EVFILT_USER, ADD)).unwrap();
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| queue.call(&[], 4, None).unwrap().len());
        queue.change(trigger(7)).unwrap();
        assert_eq!(waiting.join().unwrap(), 1);
    });
}

#[test]
fn what_there_is_no_room_for_comes_next() {
    let queue = Queue::new();
    let pairs = [(); 5].map(|()| pair());
    queue.change(event(7, EVFILT_USER, ADD)).unwrap();
    for (a, _) in &pairs {
        queue.add(a, EVFILT_WRITE);
    }
    queue.change(trigger(7)).unwrap();
    let counts = [(); 4].map(|()| queue.call(&[], 2, Some(Duration::ZERO)).unwrap().len());
    assert_eq!(counts, [2, 2, 2, 0]);
}

#[test]
fn closing_removes_the_filters_whatever_duplicates_there_are() {
    let (queue, (a, mut b)) = (Queue::new(), pair());
    let number = a.as_raw_fd();
    let duplicate = a.try_clone().unwrap();
    queue.add(&a, EVFILT_READ);
    b.write_all(b"x").unwrap();
    drop(a);
    assert_eq!(queue.now(), [], "the event was there, and is gone with it");
    b.write_all(b"x").unwrap();
    assert_eq!(queue.now(), []);
    let deleted = queue.change(event(number as usize, EVFILT_READ, EV_DELETE)).unwrap_err();
    assert!([libc::EBADF, libc::ENOENT].contains(&deleted), "{deleted}");
    queue.add(&duplicate, EVFILT_READ);
    assert_eq!(queue.now(), [(EVFILT_READ, 0)]);
}

#[test]
fn a_closed_queue_is_none() {
    let queue = Queue::new();
    let number = queue.0.as_raw_fd();
    let (a, _b) = pair();
    queue.add(&a, EVFILT_READ);
    drop(queue);
    // SAFETY: no list is longer than is said.
    let told = unsafe { kevent(number, ptr::null(), 0, ptr::null_mut(), 0, ptr::null()) };
    assert!(told == -1 || told == 0 && Queue::new().0.as_raw_fd() != number, "another test may have got its number");
}

#[test]
fn a_queue_can_be_waited_for_by_another() {
    let (outer, inner, (a, mut b)) = (Queue::new(), Queue::new(), pair());
    outer.add(&inner.0, EVFILT_READ);
    inner.add(&a, EVFILT_READ);
    assert_eq!(outer.now(), []);
    b.write_all(b"x").unwrap();
    assert_eq!(outer.now(), [(EVFILT_READ, 0)]);
    assert_eq!(inner.now(), [(EVFILT_READ, 0)]);
}

#[test]
fn a_limit_is_waited_for() {
    let (queue, limit, begin) = (Queue::new(), Duration::from_micros(1500), Instant::now());
    assert_eq!(queue.call(&[], 4, Some(limit)).unwrap(), []);
    assert!(begin.elapsed() >= limit);
}
