//! Operations on paths: what they do, what they say when they fail, and what is left when they are dropped.

use std::future::poll_fn;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::{fs as std_fs, thread};

use mini::fs::{self, DirBuilder, File, OpenOptions};
use mini_tests::net_support::{
    ScratchDir, ScratchPath, Words, fifo, in_each_runtime, in_each_world, kind_of, open_files,
};
use mini_tests::{Counts, LIMIT, block_on_elsewhere, caught, in_child, line_of, multi_thread, poll_with, within};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;

/// The most that is read without a hop.
const CHUNK: usize = 256 << 10;

/// Polls `future` once, and drops it.
fn give_up<F: Future + Unpin>(mut future: F) {
    drop(poll_with(&mut future, &Counts::new()));
}

/// Whether the file system of `path` reads without a wait what is cached.
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64", not(mini_kqueue_shim)))]
fn is_quick(path: &Path) -> bool {
    use rustix::io::{ReadWriteFlags, preadv2};
    let file = std_fs::File::open(path).unwrap();
    let mut buf = [0];
    let bufs = &mut [std::io::IoSliceMut::new(&mut buf)];
    preadv2(&file, bufs, 0, ReadWriteFlags::NOWAIT) == Ok(1)
}

#[test]
fn files_of_all_sizes_are_read_whole() {
    in_each_world(|| async {
        let path = ScratchPath::new("sizes");
        for size in [0, 8, 32, 40, 4096, 64 << 10, CHUNK - 8, CHUNK, CHUNK + 8, 1 << 20] {
            let content = Words::new(size as u64).take(size);
            fs::write(&path, &content).await.unwrap();
            for _ in 0..3 {
                assert!(fs::read(&path).await.unwrap() == content, "{size} bytes");
            }
            let mut whole = Vec::new();
            let read = File::open(&path).await.unwrap().read_to_end(&mut whole).await.unwrap();
            assert!(read == size && whole == content, "{size} bytes");
        }
    });
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64", not(mini_kqueue_shim)))]
#[test]
fn what_is_cached_takes_no_hop() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("cached");
        std_fs::write(&path, "abcdef").unwrap();
        if !is_quick(path.as_ref()) {
            return;
        }
        fs::read(&path).await.unwrap(); // the first one learns that the file system is quick
        use mini_tests::net_support::now;
        let counts = Counts::new();
        assert_eq!(now(poll_with(&mut fs::read(&path), &counts)).unwrap(), b"abcdef");
        assert_eq!(now(poll_with(&mut fs::read_to_string(&path), &counts)).unwrap(), "abcdef");
        assert_eq!(now(poll_with(&mut fs::metadata(&path), &counts)).unwrap().len(), 6);
        assert!(now(poll_with(&mut fs::try_exists(&path), &counts)).unwrap());
        mini::task::yield_now().await; // with a full budget
        let mut without_waiting = OpenOptions::new();
        without_waiting.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
        assert!(now(poll_with(&mut without_waiting.open(&path), &counts)).is_ok());
        let mut file = now(poll_with(&mut File::open(&path), &counts)).unwrap();
        let mut buf = [0; 4];
        assert_eq!(now(poll_with(&mut file.read(&mut buf), &counts)).unwrap(), 4);
        assert_eq!(&buf, b"abcd");
        assert_eq!(now(poll_with(&mut file.metadata(), &counts)).unwrap().len(), 6);
        assert_eq!(now(poll_with(&mut file.read(&mut buf), &counts)).unwrap(), 2);
        assert_eq!(now(poll_with(&mut file.read(&mut buf), &counts)).unwrap(), 0);
    });
}

#[test]
fn an_opened_file_is_in_no_odd_mode() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("mode");
        std_fs::write(&path, "x").unwrap();
        let expected = fcntl_getfl(std_fs::File::open(&path).unwrap()).unwrap();
        for _ in 0..3 {
            let file = File::open(&path).await.unwrap();
            let flags = fcntl_getfl(&file).unwrap();
            assert!(flags == expected && !flags.contains(OFlags::NONBLOCK), "{flags:?}");
            assert_eq!(rustix::io::fcntl_getfd(&file).unwrap(), rustix::io::FdFlags::CLOEXEC);
        }
    });
}

/// What a server does with names that its clients choose.
#[test]
fn without_waiting_a_fifo_is_opened_at_once_and_a_file_as_ever() {
    in_each_runtime(|| async {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
        let fifo = fifo();
        let opened = options.open(&fifo).await.unwrap();
        assert!(!opened.metadata().await.unwrap().is_file());

        let path = ScratchPath::new("ordinary");
        std_fs::write(&path, "abcdef").unwrap();
        for _ in 0..3 {
            let mut file = options.open(&path).await.unwrap();
            assert!(fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK), "as it was asked for");
            assert_eq!(file.metadata().await.unwrap().len(), 6);
            let mut content = Vec::new();
            file.read_to_end(&mut content).await.unwrap();
            assert_eq!(content, b"abcdef");
            // A relative path begins elsewhere, and one that leads through /proc goes on to another file system.
            let here = options.open("Cargo.toml").await.unwrap().metadata().await.unwrap();
            assert_eq!(here.len(), std_fs::metadata("Cargo.toml").unwrap().len());
            assert!(options.open("/proc/self/fd/0/nothing").await.is_err());
            assert!(options.open(path.as_ref().parent().unwrap()).await.unwrap().metadata().await.unwrap().is_dir());
        }
    });
}

#[test]
fn files_without_a_size_are_read() {
    if cfg!(target_os = "linux") {
        in_each_runtime(|| async {
            let expected = std_fs::read("/proc/version").unwrap();
            assert!(!expected.is_empty());
            assert_eq!(fs::read("/proc/version").await.unwrap(), expected);
            let mut content = Vec::new();
            File::open("/proc/version").await.unwrap().read_to_end(&mut content).await.unwrap();
            assert_eq!(content, expected);
        });
    }
}

#[test]
fn a_file_that_grows_is_read_up_to_some_end() {
    in_each_runtime(|| async {
        let path = ScratchPath::new("grows");
        let content = Words::new(1).take(400 << 10);
        std_fs::write(&path, &content[..8]).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let writer = thread::spawn({
            let (mut file, is_over) = (std_fs::File::options().append(true).open(&path).unwrap(), is_over.clone());
            let content = content.clone();
            move || {
                content[8..].chunks(4096 + 8).for_each(|part| file.write_all(part).unwrap());
                is_over.store(true, SeqCst);
            }
        });
        let mut length = 8;
        loop {
            let was_over = is_over.load(SeqCst);
            let read = fs::read(&path).await.unwrap();
            assert!(read.len() >= length && content.starts_with(&read));
            length = read.len();
            if was_over {
                break;
            }
        }
        assert_eq!(length, content.len());
        writer.join().unwrap();
    });
}

#[test]
fn a_fifo_stops_nobody_but_its_reader() {
    in_each_runtime(|| async {
        let path = fifo();
        let (counts, mut read) = (Counts::new(), fs::read(&path));
        assert!(poll_with(&mut read, &counts).is_pending());
        mini::spawn(mini::time::sleep(mini::time::Duration::from_micros(10))).await.unwrap();
        let path = path.as_ref().to_owned();
        let writer = thread::spawn(move || std_fs::write(path, "ping"));
        assert_eq!(read.await.unwrap(), b"ping");
        writer.join().unwrap().unwrap();
    });
}

#[test]
fn errors_are_those_of_the_system() {
    in_each_world(|| async {
        let (dir, missing) = (ScratchDir::new("errors"), "/no/such/thing");
        let file = dir.path().join("file");
        fs::create_dir_all(dir.path()).await.unwrap(); // which a simulation does not have yet
        fs::write(&file, "x").await.unwrap();
        let expect = |error: std::io::Error, number: Errno| {
            assert_eq!(error.raw_os_error(), Some(number.raw_os_error()), "{error}");
        };
        let expect_missing = |error| expect(error, Errno::NOENT);
        expect_missing(fs::read(missing).await.unwrap_err());
        expect_missing(fs::read_to_string(missing).await.unwrap_err());
        expect_missing(fs::write(missing, "").await.unwrap_err());
        expect_missing(fs::metadata(missing).await.unwrap_err());
        expect_missing(fs::symlink_metadata(missing).await.unwrap_err());
        expect_missing(fs::read_dir(missing).await.unwrap_err());
        expect_missing(fs::create_dir(missing).await.unwrap_err());
        expect_missing(fs::remove_dir(missing).await.unwrap_err());
        expect_missing(fs::remove_dir_all(missing).await.unwrap_err());
        expect_missing(fs::remove_file(missing).await.unwrap_err());
        expect_missing(fs::canonicalize(missing).await.unwrap_err());
        expect_missing(fs::read_link(missing).await.unwrap_err());
        expect_missing(File::open(missing).await.unwrap_err());
        expect_missing(File::create(missing).await.unwrap_err());
        expect_missing(fs::rename(missing, &file).await.unwrap_err());
        expect_missing(fs::copy(missing, &file).await.unwrap_err());
        expect_missing(fs::hard_link(missing, &file).await.unwrap_err());
        expect(fs::read(dir.path()).await.unwrap_err(), Errno::ISDIR);
        expect(fs::remove_dir(dir.path()).await.unwrap_err(), Errno::NOTEMPTY);
        let mut opened = File::open(&file).await.unwrap();
        expect(opened.write(b"x").await.unwrap_err(), Errno::BADF);

        fs::write(&file, [0xff]).await.unwrap();
        assert_eq!(kind_of(fs::read_to_string(&file).await), ErrorKind::InvalidData);
        assert_eq!(kind_of(fs::read("a\0b").await), ErrorKind::InvalidInput);
        assert_eq!(kind_of(OpenOptions::new().open(&file).await), ErrorKind::InvalidInput);
    });
}

#[test]
fn names_are_made_moved_and_removed() {
    in_each_world(|| async {
        let dir = ScratchDir::new("names");
        fs::create_dir_all(dir.path()).await.unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "content").await.unwrap();
        assert_eq!(fs::copy(at("a"), at("b")).await.unwrap(), 7);
        fs::hard_link(at("b"), at("c")).await.unwrap();
        fs::rename(at("b"), at("d")).await.unwrap();
        assert!(!fs::try_exists(at("b")).await.unwrap());
        fs::symlink("d", at("link")).await.unwrap();
        assert_eq!(fs::read_link(at("link")).await.unwrap(), Path::new("d"));
        assert_eq!(fs::canonicalize(at("link")).await.unwrap(), fs::canonicalize(at("d")).await.unwrap());
        for _ in 0..2 {
            assert_eq!(fs::read_to_string(at("link")).await.unwrap(), "content");
            assert!(fs::metadata(at("link")).await.unwrap().is_file());
            assert!(fs::symlink_metadata(at("link")).await.unwrap().is_symlink());
        }
        fs::remove_file(at("d")).await.unwrap();
        assert!(!fs::try_exists(at("link")).await.unwrap(), "it points to nothing");
        assert_eq!(kind_of(fs::metadata(at("link")).await), ErrorKind::NotFound);
        fs::set_permissions(at("c"), PermissionsExt::from_mode(0o640)).await.unwrap();
        assert_eq!(fs::metadata(at("c")).await.unwrap().permissions().mode() & 0o777, 0o640);

        fs::create_dir_all(at("x/y/z")).await.unwrap();
        fs::create_dir_all(at("x/y/z")).await.unwrap();
        assert_eq!(kind_of(fs::create_dir(at("x")).await), ErrorKind::AlreadyExists);
        DirBuilder::new().mode(0o700).create(at("x/private")).await.unwrap();
        assert_eq!(fs::metadata(at("x/private")).await.unwrap().permissions().mode() & 0o777, 0o700);
        fs::remove_dir(at("x/private")).await.unwrap();
        assert_eq!(kind_of(DirBuilder::new().create(at("x/p/q")).await), ErrorKind::NotFound);
        let mut all = DirBuilder::new();
        all.recursive(true).mode(0o700);
        for _ in 0..2 {
            all.create(at("x/p/q")).await.unwrap();
            assert_eq!(fs::metadata(at("x/p/q")).await.unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert_eq!(kind_of(all.recursive(false).create(at("x/p/q")).await), ErrorKind::AlreadyExists);
        let error = all.recursive(true).create(at("c/below-a-file")).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NOTDIR.raw_os_error()));
        fs::remove_dir_all(at("x")).await.unwrap();
        assert!(!fs::try_exists(at("x")).await.unwrap());
    });
}

#[test]
fn a_directory_gives_each_entry_once_also_if_waits_are_dropped() {
    in_each_world(|| async {
        let dir = ScratchDir::new("entries");
        let names: Vec<_> = (0..400).map(|number| format!("entry-{number:03}")).collect();
        fs::create_dir_all(dir.path().join("directory")).await.unwrap();
        for name in &names {
            fs::write(dir.path().join(name), "").await.unwrap();
        }
        let mut entries = fs::read_dir(dir.path()).await.unwrap();
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        loop {
            let counts = Counts::new();
            let polled = poll_with(&mut entries.next_entry(), &counts);
            let next = if let std::task::Poll::Ready(next) = polled {
                next
            } else {
                poll_fn(|cx| entries.poll_next_entry(cx)).await
            };
            let Some(entry) = next.unwrap() else { break };
            assert_eq!(entry.path(), dir.path().join(entry.file_name()));
            let metadata = entry.metadata().await.unwrap();
            assert_eq!((metadata.file_type(), metadata.ino()), (entry.file_type().await.unwrap(), entry.ino()));
            let list = if entry.file_type().await.unwrap().is_dir() { &mut directories } else { &mut files };
            list.push(entry.file_name().into_string().unwrap());
        }
        files.sort();
        assert!(files == names && directories == ["directory"]);
        assert!(entries.next_entry().await.unwrap().is_none(), "the end stays the end");
    });
}

#[test]
fn a_directory_asked_outside_a_runtime_loses_nothing() {
    within(LIMIT, || {
        let dir = ScratchDir::new("outside");
        (0..300).for_each(|number| drop(std_fs::File::create(dir.path().join(number.to_string())).unwrap()));
        let mut entries = mini::block_on(fs::read_dir(dir.path())).unwrap();
        let mut count = 0;
        let panic = caught(|| {
            while block_on_elsewhere(entries.next_entry()).unwrap().is_some() {
                count += 1;
            }
        });
        assert!(panic.message.starts_with("`mini::fs::ReadDir::next_entry`, called at"), "{}", panic.message);
        mini::block_on(async {
            while entries.next_entry().await.unwrap().is_some() {
                count += 1;
            }
        });
        assert_eq!(count, 300);
    });
}

/// A file with the content `word`, which is removed when this is dropped.
fn temporary() -> ScratchPath {
    let path = ScratchPath::new("temporary");
    std_fs::write(&path, "word").unwrap();
    path
}

#[test]
fn a_path_is_dropped_when_the_operation_is_done_and_not_before() {
    in_each_runtime(|| async {
        assert_eq!(fs::read(temporary()).await.unwrap(), b"word");
        assert_eq!(fs::read_to_string(temporary()).await.unwrap(), "word");
        let mut content = String::new();
        File::open(temporary()).await.unwrap().into_std().await.read_to_string(&mut content).unwrap();
        assert_eq!(content, "word");
        let mut file = OpenOptions::new().read(true).write(true).open(temporary()).await.unwrap();
        file.write_all(b"WORD").await.unwrap();
        assert_eq!(fs::metadata(temporary()).await.unwrap().len(), 4);
        assert!(fs::symlink_metadata(temporary()).await.unwrap().is_file());
        assert!(fs::try_exists(temporary()).await.unwrap());
        let path = temporary();
        assert_eq!(path.as_ref().to_owned(), fs::canonicalize(path).await.unwrap());
        fs::set_permissions(temporary(), std_fs::Permissions::from_mode(0o600)).await.unwrap();
        fs::remove_file(temporary()).await.unwrap();

        // An operation that is kept does so too.
        let path = temporary();
        let name = path.as_ref().to_owned();
        let mut read = fs::read(path);
        assert!(name.exists());
        assert_eq!((&mut read).await.unwrap(), b"word");
        assert!(!name.exists());
    });
}

#[test]
fn the_paths_of_a_copy_and_of_links_are_there_for_the_operation() {
    in_each_runtime(|| async {
        let (copied, linked, renamed) =
            (ScratchPath::new("copied"), ScratchPath::new("linked"), ScratchPath::new("moved"));
        assert_eq!(fs::copy(temporary(), &copied).await.unwrap(), 4);
        fs::hard_link(temporary(), &linked).await.unwrap();
        fs::rename(temporary(), &renamed).await.unwrap();
        for path in [&copied, &linked, &renamed] {
            assert_eq!(std_fs::read(path).unwrap(), b"word");
        }
        let link = ScratchPath::new("link");
        std_fs::remove_file(&renamed).unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert_eq!(fs::read_link(link).await.unwrap(), Path::new("nowhere"));
    });
}

#[test]
fn what_is_made_goes_away_with_its_path() {
    in_each_runtime(|| async {
        let paths: [ScratchPath; 4] = [(); 4].map(|()| ScratchPath::new("made"));
        let names = paths.each_ref().map(|path| path.as_ref().to_owned());
        let [written, created, made, target] = paths;
        fs::write(written, "word").await.unwrap();
        File::create(created).await.unwrap();
        File::create_new(made).await.unwrap();
        fs::copy(temporary(), target).await.unwrap();
        assert!(names.iter().all(|name| !name.exists()), "{names:?}");
    });
}

#[test]
fn a_directory_that_goes_with_its_path_is_there_for_the_operation() {
    struct Temporary(ScratchDir);
    impl AsRef<Path> for Temporary {
        fn as_ref(&self) -> &Path {
            self.0.path()
        }
    }
    in_each_runtime(|| async {
        let directory = || {
            let directory = Temporary(ScratchDir::new("going"));
            std_fs::write(directory.as_ref().join("file"), "").unwrap();
            directory
        };
        let mut entries = fs::read_dir(directory()).await.unwrap();
        assert_eq!(entries.next_entry().await.unwrap().unwrap().file_name(), "file");
        assert_eq!(kind_of(fs::create_dir(directory()).await), ErrorKind::AlreadyExists);
        assert_eq!(kind_of(fs::remove_dir(directory()).await), ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind_of(DirBuilder::new().create(directory()).await), ErrorKind::AlreadyExists);
        fs::create_dir_all(directory()).await.unwrap();
        fs::remove_dir_all(directory()).await.unwrap();
    });
}

#[test]
fn an_operation_can_be_spawned_as_far_as_its_path_lets_it() {
    in_each_runtime(|| async {
        let path = temporary();
        assert_eq!(mini::spawn(fs::read(path.as_ref().to_owned())).await.unwrap().unwrap(), b"word");
        let task = mini::spawn({
            let path = path.as_ref().to_owned();
            async move { fs::read(&path).await }
        });
        assert_eq!(task.await.unwrap().unwrap(), b"word");
        assert_eq!(mini::spawn(fs::read("/dev/null")).await.unwrap().unwrap(), b"");
        // A path that stays on its thread keeps the operation there.
        let path: std::rc::Rc<Path> = path.as_ref().into();
        assert_eq!(mini::spawn_local(fs::read(path)).await.unwrap().unwrap(), b"word");
    });
}

#[test]
fn what_was_begun_goes_on() {
    within(LIMIT, || {
        let dir = ScratchDir::new("goes-on");
        let runtime = multi_thread(1).max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            give_up(fs::create_dir(dir.path().join("made")));
            drop(fs::create_dir(dir.path().join("never")));
            mini::spawn_blocking(|| {}).await.unwrap(); // behind the other in the queue of one thread
        });
        assert!(dir.path().join("made").is_dir() && !dir.path().join("never").exists());
    });
}

#[test]
fn without_a_runtime_it_is_said_where() {
    let line = line_of(include_str!("fs.rs"), "// nobody");
    for path in ["/no/such/thing", "/proc/version"] {
        let read = fs::read(path); // nobody
        let panic = caught(|| block_on_elsewhere(read));
        let expected = format!("`mini::fs::read`, called at {}:{line}:", file!());
        assert!(panic.message.starts_with(&expected), "{}", panic.message);
    }
}

#[test]
fn after_the_end_every_hop_is_an_error() {
    within(LIMIT, || {
        let runtime = multi_thread(1).build().unwrap();
        let handle = runtime.handle().clone();
        let path = ScratchPath::new("ended");
        let mut file = runtime.block_on(File::create(&path)).unwrap();
        let mut entries = runtime.block_on(fs::read_dir("/proc/self/fd")).unwrap();
        drop(runtime);
        let _guard = handle.enter();
        let said = |error: std::io::Error| assert!(error.to_string().contains("shut down"), "{error}");
        said(block_on_elsewhere(fs::write(&path, "x")).unwrap_err());
        said(block_on_elsewhere(file.write_all(b"x")).unwrap_err());
        said(block_on_elsewhere(file.sync_all()).unwrap_err());
        while let Ok(Some(_)) = block_on_elsewhere(entries.next_entry()) {}
        assert_eq!(std_fs::read(&path).unwrap(), b"");
        drop(block_on_elsewhere(file.into_std()));
    });
}

#[test]
fn no_descriptor_is_leaked() {
    in_child("no_descriptor_is_leaked", || {
        let path = ScratchPath::new("leaks");
        std_fs::write(&path, "content").unwrap();
        let before = open_files();
        let runtime = multi_thread(2).build().unwrap();
        runtime.block_on(async {
            for _ in 0..100 {
                give_up(fs::read(&path));
                give_up(File::open(&path));
                give_up(File::create(&path));
                give_up(fs::read_dir("/"));
                give_up(fs::metadata(&path));
                let mut file = File::options().read(true).write(true).open(&path).await.unwrap();
                give_up(file.write_all(b"content"));
                give_up(file.read(&mut [0; 4]));
                give_up(file.sync_data());
                give_up(file.try_clone());
                drop(file);
            }
        });
        drop(runtime);
        while open_files() > before {
            thread::yield_now(); // threads may be on their way out
        }
    });
}
