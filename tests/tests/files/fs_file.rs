//! `File`: its position, where its data are when futures, files and runtimes are dropped, and its traits.

use std::fs as std_fs;
use std::io::{ErrorKind, IoSlice, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::Poll;

use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, StreamExt, io};
use mini::fs::{self, File};
use mini::runtime::Runtime;
use mini::time::Duration;
use mini_tests::net_support::{ScratchPath, Words, fifo, in_each_runtime, in_each_world, kind_of};
use mini_tests::{Counts, LIMIT, in_child, multi_thread, on_each_flavour, poll_with, within};
use rustix::fs::OFlags;

#[cfg(target_os = "linux")]
mod kernel;

/// As `in_each_runtime`, with one blocking thread.
fn on_one_thread<F>(body: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    on_each_flavour(move |mut builder| {
        let runtime = builder.max_blocking_threads(1).build().unwrap();
        runtime.block_on(body());
        runtime.block_on(runtime.spawn(body())).unwrap();
    });
}

/// Polls `future` once and drops it, while the one blocking thread is kept from its job. Then the thread may go on.
async fn give_up<F: Future + Unpin>(mut future: F) {
    let (go, may_go) = mpsc::channel::<()>();
    let busy = mini::spawn_blocking(move || may_go.recv().is_err());
    assert!(poll_with(&mut future, &Counts::new()).is_pending());
    drop(future);
    drop(go);
    assert!(busy.await.unwrap());
}

fn is_readable(file: &File) -> bool {
    let mut fds = [rustix::event::PollFd::new(file, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&rustix::event::Timespec::default())).unwrap() > 0
}

/// A path in a file system where each read takes a hop, if there is one.
fn where_reads_hop(name: &str) -> Option<std::path::PathBuf> {
    let folder = if cfg!(target_os = "linux") { "/dev/shm".into() } else { std::env::temp_dir() };
    folder.is_dir().then(|| folder.join(format!("{name}-{}", std::process::id())))
}

/// Waits until the one blocking thread has done what was begun before.
async fn settled() {
    mini::spawn_blocking(|| {}).await.unwrap();
}

#[test]
fn a_read_takes_what_is_asked_for() {
    in_each_world(|| async {
        let (path, content) = (ScratchPath::new("takes"), Words::new(3).take(600 << 10));
        fs::write(&path, &content).await.unwrap();
        let (mut file, mut read, mut size) = (File::open(&path).await.unwrap(), Vec::new(), 1);
        loop {
            let mut buf = vec![0; size];
            let length = file.read(&mut buf).await.unwrap();
            assert!(length <= size && buf[length..].iter().all(|&byte| byte == 0));
            if length == 0 {
                break;
            }
            read.extend_from_slice(&buf[..length]);
            size = (size * 3).min(300 << 10);
        }
        assert!(read == content);
        assert_eq!(file.read(&mut []).await.unwrap(), 0);
        file.seek(SeekFrom::End(-4)).await.unwrap();
        let mut buf = [0; 8];
        let error = file.read_exact(&mut buf).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(buf[..4], content[content.len() - 4..]);
    });
}

#[test]
fn writes_and_reads_and_seeks_share_a_position() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("position");
        let mut file = File::create_new(&path).await.unwrap();
        file.write_all(b"0123456789").await.unwrap();
        assert_eq!(file.seek(SeekFrom::Start(2)).await.unwrap(), 2);
        let mut buf = [0; 3];
        file.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"234");
        file.write_all(b"xx").await.unwrap();
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 7);
        let mut clone = file.try_clone().await.unwrap();
        assert_eq!(clone.read(&mut buf).await.unwrap(), 3);
        assert_eq!(&buf, b"789");
        assert_eq!(file.read(&mut buf).await.unwrap(), 0, "the clone was there already");
        assert_eq!(file.seek(SeekFrom::End(-1)).await.unwrap(), 9);
        assert_eq!(kind_of(file.seek(SeekFrom::Current(-10)).await), ErrorKind::InvalidInput);
        let mut std = file.into_std().await;
        assert_eq!(std.stream_position().unwrap(), 9);
        std.seek(SeekFrom::Start(8)).unwrap();
        assert_eq!(clone.read(&mut buf).await.unwrap(), 2);
        assert_eq!(fs::read(&path).await.unwrap(), b"01234xx789");
    });
}

#[test]
fn options_do_what_they_say() {
    in_each_world(|| async {
        let path = ScratchPath::new("options");
        assert_eq!(kind_of(File::options().write(true).open(&path).await), ErrorKind::NotFound);
        File::create(&path).await.unwrap().write_all(b"old").await.unwrap();
        assert_eq!(kind_of(File::create_new(&path).await), ErrorKind::AlreadyExists);
        let mut end = File::options().append(true).open(&path).await.unwrap();
        let mut front = File::options().write(true).open(&path).await.unwrap();
        end.write_all(b"er").await.unwrap();
        front.write_all(b"b").await.unwrap();
        end.write_all(b"!").await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"blder!");
        front.set_len(3).await.unwrap();
        assert_eq!(front.metadata().await.unwrap().len(), 3);
        let cut = File::options().read(true).write(true).truncate(true).open(&path).await.unwrap();
        assert_eq!(cut.metadata().await.unwrap().len(), 0);
        front.sync_all().await.unwrap();
        front.sync_data().await.unwrap();
    });
}

#[test]
fn a_write_that_was_ready_is_in_the_file_whatever_is_dropped() {
    within(LIMIT, || {
        for round in 0..20 {
            let (path, content) = (ScratchPath::new("ready"), Words::new(round).take(600 << 10));
            let runtime = multi_thread(1).build().unwrap();
            let (file, content) = runtime.block_on(async {
                let mut file = File::create(&path).await.unwrap();
                file.write_all(&content).await.unwrap();
                (file, content)
            });
            runtime.shutdown_background();
            assert!(std_fs::read(&path).unwrap() == content);
            drop(file);
        }
    });
}

#[test]
fn a_dropped_write_is_carried_out_once_and_before_the_next() {
    on_one_thread(|| async {
        let path = ScratchPath::new("dropped");
        let mut file = File::create(&path).await.unwrap();
        give_up(file.write(b"one,")).await;
        file.write_all(b"two,").await.unwrap();
        give_up(file.write_all(b"three,")).await;
        file.write_all(b"three,").await.unwrap(); // the same again
        give_up(file.write(b"four,")).await;
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 19);
        give_up(file.write(b"five")).await;
        file.flush().await.unwrap();
        assert_eq!(std_fs::read(&path).unwrap(), b"one,two,three,four,five");
        give_up(file.write(b".")).await;
        drop(file);
        settled().await;
        assert_eq!(std_fs::read(&path).unwrap(), b"one,two,three,four,five.");
    });
}

#[test]
fn what_is_written_after_a_cut_is_written_though_a_dropped_write_was_the_same() {
    on_one_thread(|| async {
        let path = ScratchPath::new("cut");
        let mut file = File::options().append(true).create(true).open(&path).await.unwrap();
        give_up(file.write_all(b"record")).await;
        file.set_len(0).await.unwrap(); // one thread: after the write
        file.write_all(b"record").await.unwrap();
        assert_eq!(std_fs::read(&path).unwrap(), b"record");
        std_fs::remove_file(&path).unwrap();
    });
}

/// Nothing is cut off there, so what the write has written need not be written again.
#[test]
fn a_write_beside_one_that_makes_the_file_longer_is_done_once() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("longer");
        for round in 0..200 {
            std::fs::write(&path, b"").unwrap();
            let mut file = File::options().append(true).open(&path).await.unwrap();
            let other = file.try_clone().await.unwrap();
            let longer = mini::spawn(async move { other.set_len(4096).await });
            file.write_all(b"record").await.unwrap();
            longer.await.unwrap().unwrap();
            let content = std::fs::read(&path).unwrap();
            assert_eq!(content.windows(6).filter(|part| part == b"record").count(), 1, "round {round}");
        }
    });
}

#[test]
fn a_cut_counts_when_it_is_made() {
    on_one_thread(|| async {
        let path = ScratchPath::new("late-cut");
        let mut file = File::options().append(true).create(true).open(&path).await.unwrap();
        let cut = file.set_len(0);
        give_up(file.write_all(b"record")).await;
        cut.await.unwrap();
        file.write_all(b"record").await.unwrap();
        assert_eq!(std_fs::read(&path).unwrap(), b"record", "the first was cut off");
        drop(file.set_len(0));
        give_up(file.write_all(b"more")).await;
        file.write_all(b"more").await.unwrap(); // the same again
        assert_eq!(std_fs::read(&path).unwrap(), b"recordmore", "nothing was cut off");
        std_fs::remove_file(&path).unwrap();
    });
}

#[test]
fn for_the_file_a_dropped_read_has_taken_nothing() {
    if cfg!(target_os = "linux") {
        on_one_thread(|| async {
            // Of a file system where everything takes a hop.
            let Some(path) = where_reads_hop("mini-dropped-read") else { return };
            let expected: Vec<u8> = (0..100).collect();
            std_fs::write(&path, &expected).unwrap();
            let mut file = File::options().read(true).write(true).open(&path).await.unwrap();
            let mut buf = [0; 8];
            give_up(file.read(&mut buf)).await;
            assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 0);
            give_up(file.read(&mut buf)).await;
            file.seek(SeekFrom::Start(3)).await.unwrap();
            file.read_exact(&mut buf).await.unwrap();
            assert_eq!(buf, expected[3..11]);
            give_up(file.read(&mut buf)).await;
            file.read_exact(&mut buf[..3]).await.unwrap();
            assert_eq!(buf[..3], expected[11..14]);
            assert_eq!(file.seek(SeekFrom::Current(-2)).await.unwrap(), 12);
            give_up(file.read(&mut buf)).await;
            file.write_all(b"!").await.unwrap();
            assert_eq!(std_fs::read(&path).unwrap()[11..15], [11, b'!', 13, 14]);
            let mut rest = Vec::new();
            file.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, expected[13..]);
            file.seek(SeekFrom::Start(1)).await.unwrap();
            give_up(file.read(&mut buf)).await;
            assert_eq!(file.into_std().await.stream_position().unwrap(), 1);
            std_fs::remove_file(&path).unwrap();
        });
    }
}

#[test]
fn what_a_dropped_read_has_fetched_is_not_seen_by_clones_and_goes_to_the_next() {
    on_one_thread(|| async {
        let Some(path) = where_reads_hop("mini-dropped-clone") else { return };
        std_fs::write(&path, "0123456789").unwrap();
        let mut file = File::open(&path).await.unwrap();
        let mut clone = file.try_clone().await.unwrap();
        let (mut buf, mut rest) = ([0; 4], Vec::new());
        give_up(file.read(&mut buf)).await;
        settled().await;
        clone.read_to_end(&mut rest).await.unwrap();
        let refused = file.try_into_std().map(drop);
        let Err(mut file) = refused else { panic!("the position is behind bytes that were not taken") };
        assert_eq!((file.read(&mut buf).await.unwrap(), &buf, &rest[..]), (4, b"0123", &b"456789"[..]));
        clone.seek(SeekFrom::Start(0)).await.unwrap();
        assert_eq!((file.read(&mut buf).await.unwrap(), &buf), (4, b"0123"), "the position is shared");
        std_fs::remove_file(&path).unwrap();
    });
}

/// An inotify(7) instance, where lseek(2) succeeds and moves nothing.
#[cfg(target_os = "linux")]
#[test]
fn what_a_dropped_read_of_a_device_has_fetched_outlasts_a_seek() {
    use rustix::fs::inotify;

    on_one_thread(|| async {
        let path = ScratchPath::new("watched");
        std_fs::write(&path, "").unwrap();
        let events = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        let watch = inotify::add_watch(&events, path.as_ref(), inotify::WatchFlags::MODIFY).unwrap();
        std_fs::write(&path, "changed").unwrap();
        let mut file = File::from_std(std_fs::File::from(events));
        let (mut event, mut buf) = ([0; 16], [0; 64]);
        give_up(file.read(&mut buf)).await;
        settled().await;
        file.read_exact(&mut event[..8]).await.unwrap();
        let _moved = file.seek(SeekFrom::Current(0)).await;
        file.read_exact(&mut event[8..]).await.unwrap();
        assert_eq!((&event[..4], &event[8..]), (&watch.to_ne_bytes()[..], &[0; 8][..]));
    });
}

#[test]
fn the_end_that_a_dropped_read_has_seen_is_returned_once() {
    on_one_thread(|| async {
        let Some(path) = where_reads_hop("mini-grown") else { return };
        std_fs::write(&path, "").unwrap();
        let mut file = File::open(&path).await.unwrap();
        let mut buf = [0; 8];
        for _ in 0..2 {
            give_up(file.read(&mut buf)).await;
            settled().await;
            std_fs::File::options().append(true).open(&path).unwrap().write_all(b"grown").unwrap();
            assert_eq!(file.read(&mut buf).await.unwrap(), 0);
            assert_eq!((file.read(&mut buf).await.unwrap(), &buf[..5]), (5, &b"grown"[..]));
        }
        std_fs::remove_file(&path).unwrap();
    });
}

#[test]
fn what_a_dropped_read_has_fetched_is_not_given_out_after_a_cut() {
    on_one_thread(|| async {
        let Some(path) = where_reads_hop("mini-cut-read") else { return };
        std_fs::write(&path, "old old old").unwrap();
        let mut file = File::options().read(true).write(true).open(&path).await.unwrap();
        let mut buf = [0; 11];
        give_up(file.read(&mut buf)).await;
        file.set_len(0).await.unwrap(); // one thread: after the read
        std_fs::write(&path, "new").unwrap();
        assert_eq!((file.read(&mut buf).await.unwrap(), &buf[..3]), (3, &b"new"[..]));
        assert_eq!(file.read(&mut buf).await.unwrap(), 0);
        std_fs::remove_file(&path).unwrap();
    });
}

#[test]
fn clones_that_read_at_the_same_time_share_the_bytes() {
    in_each_world(|| async {
        let (path, total) = (ScratchPath::new("share"), 1500_u32);
        let records: Vec<u8> = (0..total).flat_map(u32::to_ne_bytes).collect();
        fs::write(&path, &records).await.unwrap();
        let file = File::open(&path).await.unwrap();
        let mut readers = Vec::new();
        for _ in 0..3 {
            let mut clone = file.try_clone().await.unwrap();
            readers.push(mini::spawn(async move {
                let (mut taken, mut record) = (Vec::new(), [0; 4]);
                while clone.read(&mut record).await.unwrap() > 0 {
                    taken.push(u32::from_ne_bytes(record));
                }
                taken
            }));
        }
        let mut taken = Vec::new();
        for reader in readers {
            taken.extend(reader.await.unwrap());
        }
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(0..total), "each once");
    });
}

#[test]
fn what_a_dropped_read_took_from_a_fifo_goes_to_the_next() {
    on_one_thread(|| async {
        let path = fifo();
        let mut writer = std_fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut file = File::open(&path).await.unwrap();
        let mut buf = [0; 8];
        give_up(file.read(&mut buf)).await;
        writer.write_all(b"abc").unwrap();
        file.read_exact(&mut buf[..1]).await.unwrap();
        let file = file.try_into_std().map(drop);
        let Err(mut file) = file else { panic!("two bytes would be lost") };
        assert_eq!(file.read(&mut buf[1..]).await.unwrap(), 2);
        assert_eq!(&buf[..3], b"abc");
        assert_eq!(kind_of(file.seek(SeekFrom::Start(0)).await), ErrorKind::NotSeekable);
        writer.write_all(b"d").unwrap();
        assert_eq!(file.read(&mut buf).await.unwrap(), 1);
        let mut file = File::from_std(file.try_into_std().expect("nothing is kept"));
        give_up(file.read(&mut buf)).await;
        writer.write_all(b"ef").unwrap();
        file.read_exact(&mut buf[..1]).await.unwrap();
        drop(file.into_std().await); // does not wait for a position
    });
}

#[test]
fn a_flush_does_not_wait_for_a_dropped_read() {
    on_one_thread(|| async {
        let path = fifo();
        let mut writer = std_fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut file = File::options().read(true).write(true).open(&path).await.unwrap();
        give_up(file.read(&mut [0; 4])).await;
        file.flush().await.unwrap();
        writer.write_all(b"x").unwrap();
        settled().await;
    });
}

/// What the read waits for may be the answer.
#[test]
fn a_write_to_a_fifo_does_not_wait_for_a_dropped_read() {
    in_each_runtime(|| async {
        let path = fifo();
        let mut file = File::options().read(true).write(true).open(&path).await.unwrap();
        let mut buf = [0; 4];
        for _ in 0..2 {
            let mut read = file.read(&mut buf);
            assert!(poll_with(&mut read, &Counts::new()).is_pending());
            drop(read);
            file.write_all(b"ab").await.unwrap();
            file.write_all(b"c").await.unwrap();
            file.flush().await.unwrap();
            let mut answer = [0; 3];
            file.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"abc");
        }
        drop(file.read(&mut buf));
        file.write_all(b"d").await.unwrap();
        drop(file.into_std().await);
    });
}

/// Where what is there can be read without a hop, too: the first bytes are those of the read that was given up.
#[test]
fn what_a_read_beside_a_write_has_taken_comes_before_what_is_there_now() {
    in_each_runtime(|| async {
        let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut file = File::from_std(std_fs::File::from(std::os::fd::OwnedFd::from(near)));
        let mut buf = [0; 8];
        let mut read = file.read(&mut buf[..5]); // or it could take what comes later too
        assert!(poll_with(&mut read, &Counts::new()).is_pending());
        drop(read);
        file.write_all(b"question").await.unwrap();
        std::io::Read::read_exact(&mut far, &mut [0; 8]).unwrap();
        far.write_all(b"first").unwrap();
        while is_readable(&file) {
            mini::task::yield_now().await; // until the read that was given up has it
        }
        far.write_all(b"then").unwrap();
        assert_eq!(file.read(&mut buf).await.unwrap(), 5);
        assert_eq!(&buf[..5], b"first");
        assert_eq!(file.read(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf[..4], b"then");
    });
}

#[test]
fn the_error_of_a_dropped_write_is_told_by_the_next() {
    if cfg!(target_os = "linux") {
        on_one_thread(|| async {
            let mut file = File::options().write(true).open("/dev/full").await.unwrap();
            let expect = |error: std::io::Error| {
                assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
                assert_eq!(error.raw_os_error(), Some(28));
            };
            expect(file.write(b"x").await.unwrap_err());
            file.flush().await.unwrap(); // it has been told
            give_up(file.write(b"x")).await;
            expect(file.flush().await.unwrap_err());
            file.flush().await.unwrap();
            give_up(file.write(b"x")).await;
            expect(file.write(b"y").await.unwrap_err());
        });
    }
}

#[test]
fn the_rest_of_a_short_write_is_tried_again() {
    let said = in_child("the_rest_of_a_short_write_is_tried_again", || {
        multi_thread(1).build().unwrap().block_on(async {
            let (mut reader, writer) = std::io::pipe().unwrap();
            rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
            let (mut file, content) = (File::from(OwnedFd::from(writer)), [7; 200 << 10]);
            let written = file.write(&content).await.unwrap();
            assert!(written < content.len(), "more than a pipe takes");
            file.flush().await.unwrap();
            assert_eq!(kind_of(file.write(&content).await), ErrorKind::WouldBlock);
            reader.read_exact(&mut vec![0; written]).unwrap();
            assert!(file.write(&content).await.unwrap() < content.len());
        });
    });
    assert!(!said.unwrap_or_default().contains("call `flush`"));
}

/// A file at `path` with a write that waits for the one blocking thread, which goes on when the sender is dropped.
fn with_a_waiting_write(path: &ScratchPath) -> (Runtime, File, mpsc::Sender<()>) {
    let runtime = multi_thread(1).max_blocking_threads(1).build().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    let file = runtime.block_on(async {
        let mut file = File::create(path).await.unwrap();
        drop(mini::spawn_blocking(move || may_go.recv().is_err()));
        assert!(poll_with(&mut file.write(b"x"), &Counts::new()).is_pending());
        file
    });
    (runtime, file, go)
}

#[test]
fn a_write_that_a_shutdown_discards_is_told_by_flush() {
    within(LIMIT, || {
        let path = ScratchPath::new("discarded");
        let (runtime, mut file, go) = with_a_waiting_write(&path);
        runtime.shutdown_timeout(Duration::ZERO);
        drop(go);
        let error = mini::block_on(file.flush()).unwrap_err().to_string();
        assert!(error.contains("shut down"), "{error}");
        mini::block_on(file.flush()).expect("it has been told");
        assert_eq!(std_fs::read(&path).unwrap(), b"");
    });
}

#[test]
fn a_write_that_waits_for_a_thread_is_carried_out_by_the_end() {
    within(LIMIT, || {
        for is_waited_for in [true, false] {
            let path = ScratchPath::new("accepted");
            let (runtime, mut file, go) = with_a_waiting_write(&path);
            if is_waited_for {
                let ending = std::thread::spawn(move || drop(runtime));
                drop(go);
                ending.join().unwrap();
                assert_eq!(std_fs::read(&path).unwrap(), b"x");
            } else {
                runtime.shutdown_background();
                drop(go);
            }
            mini::block_on(file.flush()).unwrap();
            assert_eq!(std_fs::read(&path).unwrap(), b"x");
        }
    });
}

#[test]
fn an_error_that_nobody_can_be_told_is_printed() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let said = in_child("an_error_that_nobody_can_be_told_is_printed", || {
        let runtime = multi_thread(1).max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let mut file = File::options().write(true).open("/dev/full").await.unwrap();
            give_up(file.write(b"x")).await;
            drop(file);
            settled().await;
        });
    });
    if let Some(said) = said {
        let line = "mini: failed to write `/dev/full`: No space left on device (os error 28); call `flush` before";
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn into_std_waits_for_what_was_dropped() {
    on_one_thread(|| async {
        let path = ScratchPath::new("into-std");
        for _ in 0..5 {
            let mut file = File::create(&path).await.unwrap();
            give_up(file.sync_all()).await;
            give_up(file.write(b"written")).await;
            assert_eq!(file.into_std().await.stream_position().unwrap(), 7);
        }
        let file = File::open(&path).await.unwrap();
        let sync = file.sync_all();
        let file = file.try_into_std().expect_err("another has a part in it");
        drop(sync);
        assert!(file.try_into_std().is_ok());
    });
}

#[test]
fn several_buffers_are_written_together() {
    in_each_world(|| async {
        let path = ScratchPath::new("vectored");
        let mut file = File::create(&path).await.unwrap();
        let content = Words::new(9).take(400 << 10);
        let bufs = [&content[..3], &[], &content[3..1000], &content[1000..]].map(IoSlice::new);
        let write = |file: &mut File, cx: &mut std::task::Context<'_>| Pin::new(file).poll_write_vectored(cx, &bufs);
        let written = std::future::poll_fn(|cx| write(&mut file, cx)).await.unwrap();
        assert!(written > 1000, "{written}");
        assert!(fs::read(&path).await.unwrap() == content[..written]);
        let nothing = std::future::poll_fn(|cx| Pin::new(&mut file).poll_write_vectored(cx, &[])).await;
        assert_eq!(nothing.unwrap(), 0);
    });
}

#[test]
fn the_traits_of_the_ecosystem_work() {
    in_each_world(|| async {
        let path = ScratchPath::new("traits");
        let mut writer = io::BufWriter::new(File::create(&path).await.unwrap());
        for number in 0..1000 {
            writer.write_all(format!("{number}\n").as_bytes()).await.unwrap();
        }
        writer.close().await.unwrap();
        let file = File::open(&path).await.unwrap();
        let lines: Vec<_> = io::BufReader::new(file).lines().map(Result::unwrap).collect().await;
        assert!(lines.iter().enumerate().all(|(number, line)| *line == number.to_string()) && lines.len() == 1000);
        let mut file = File::open(&path).await.unwrap();
        AsyncSeekExt::seek(&mut file, SeekFrom::Start(2)).await.unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("1\n2\n"));
    });
}

#[test]
fn one_who_reads_all_the_time_lets_others_run() {
    in_each_world(|| async {
        let path = ScratchPath::new("reads");
        fs::write(&path, [7; 2000]).await.unwrap();
        let mut file = File::open(&path).await.unwrap();
        let (mut buf, mut reads) = ([0; 1], 0);
        // Cached or not: some read has to wait, or to yield.
        while let Poll::Ready(read) = poll_with(&mut file.read(&mut buf), &Counts::new()) {
            read.unwrap();
            reads += 1;
            assert!(reads <= 1000);
        }
    });
}
