//! Files in a simulation: they are what they are outside, and a crash loses what was not synced.

use std::collections::BTreeSet;
use std::io::{ErrorKind, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use mini::fs::{self, File, OpenOptions};
use mini::net::{TcpListener, TcpStream};
use mini::sim::{Current, Disk, Seeds, Sim, current};
use mini::time::sleep;
use mini_tests::child_support::own_test;
use mini_tests::{Counts, in_child, poll_with};
use rustix::io::Errno;

mod same;

/// Runs `body` under a seed.
fn run<T>(seed: u64, body: impl AsyncFn(Disk) -> std::io::Result<T>) -> T {
    Sim::new(seed).run(async { body(current().disk()).await }).unwrap().unwrap()
}

fn number<T: std::fmt::Debug>(result: std::io::Result<T>) -> Option<Errno> {
    result.unwrap_err().raw_os_error().map(Errno::from_raw_os_error)
}

async fn sync_dir(path: &str) -> std::io::Result<()> {
    File::open(path).await?.sync_all().await
}

/// What `body` makes of 100 seeds.
fn outcomes<T: Ord>(body: impl AsyncFn(Disk) -> std::io::Result<T>) -> BTreeSet<T> {
    (0..100).map(|seed| run(seed, &body)).collect()
}

#[test]
fn a_write_that_was_dropped_is_before_a_cut() {
    let lengths = outcomes(async |_| {
        let mut file = File::create("/file").await?;
        assert!(poll_with(&mut file.write(&[1; 1000]), &Counts::new()).is_pending());
        file.set_len(0).await?;
        file.flush().await?;
        fs::read("/file").await.map(|content| content.len())
    });
    assert_eq!(lengths, BTreeSet::from([0]));
}

#[test]
fn an_acknowledged_record_that_was_not_synced_is_lost() {
    let records = async |disk: Disk, syncs: bool| {
        let mut log = OpenOptions::new().create(true).append(true).open("/wal").await?;
        log.sync_all().await?;
        sync_dir("/").await?;
        for record in [b"one ", b"two "] {
            log.write_all(record).await?;
            if syncs {
                log.sync_data().await?;
            }
        }
        disk.crash();
        assert_eq!(number(log.write_all(b"three ").await), Some(Errno::IO));
        fs::read_to_string("/wal").await
    };
    let forgetful = outcomes(async |disk| records(disk, false).await);
    assert_eq!(forgetful, BTreeSet::from(["", "one ", "one two "].map(String::from)));
    assert_eq!(outcomes(async |disk| records(disk, true).await), BTreeSet::from(["one two ".to_owned()]));
}

/// A server that acknowledges records once they are in its log.
async fn serve(syncs: bool, found: Arc<AtomicU64>) -> std::io::Result<()> {
    let mut log = OpenOptions::new().create(true).append(true).open("/log").await?;
    found.store(log.metadata().await?.len(), Relaxed);
    log.sync_all().await?;
    sync_dir("/").await?;
    let listener = TcpListener::bind("0.0.0.0:80").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let mut record = [0; 8];
        while stream.read_exact(&mut record).await.is_ok() {
            log.write_all(&record).await?;
            if syncs {
                log.sync_data().await?;
            }
            stream.write_all(&[1]).await?;
        }
    }
}

/// How many of five acknowledged records the server finds when it is started again.
fn records_after(goes_down: fn(&Current), syncs: bool) -> BTreeSet<u64> {
    outcomes(async |_| {
        let (sim, found) = (current(), Arc::new(AtomicU64::new(0)));
        let log = found.clone();
        sim.host("server", move || serve(syncs, log.clone()));
        sleep(Duration::from_secs(1)).await;
        let stream = TcpStream::connect("server:80").await?;
        for record in 0..5_u64 {
            stream.write_all(&record.to_be_bytes()).await?;
            stream.read_exact(&mut [0]).await?;
        }
        goes_down(&sim);
        sim.restart("server");
        sleep(Duration::from_secs(1)).await;
        assert!(!fs::try_exists("/log").await?, "the test has a disk of its own");
        Ok(found.load(Relaxed) / 8)
    })
}

#[test]
fn a_host_that_crashes_or_loses_its_power_loses_what_it_has_not_synced() {
    let none = |_: &Current| ();
    for goes_down in [|sim: &Current| sim.crash("server"), |sim: &Current| sim.power_off("server")] {
        assert_eq!(records_after(goes_down, false), BTreeSet::from([0, 1, 2, 3, 4, 5]));
        assert_eq!(records_after(goes_down, true), BTreeSet::from([5]));
    }
    assert_eq!(records_after(none, false), BTreeSet::from([0]), "it has found an empty log, and was not started again");
}

#[test]
fn a_synced_file_is_lost_with_its_name_unless_the_directory_was_synced() {
    let remains = async |disk: Disk, syncs: bool| {
        fs::create_dir("/data").await?;
        sync_dir("/").await?;
        let mut file = File::create("/data/file").await?;
        file.write_all(b"content").await?;
        file.sync_all().await?;
        if syncs {
            sync_dir("/data").await?;
        }
        disk.crash();
        match fs::read_to_string("/data/file").await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok("nothing".to_owned()),
            content => content,
        }
    };
    let forgetful = outcomes(async |disk| remains(disk, false).await);
    assert_eq!(forgetful, BTreeSet::from(["content", "nothing"].map(String::from)));
    assert_eq!(outcomes(async |disk| remains(disk, true).await), BTreeSet::from(["content".to_owned()]));
}

#[test]
fn a_rename_without_a_sync_of_the_file_leaves_an_empty_one() {
    let replaced = async |disk: Disk, syncs: bool| {
        fs::write("/config", "old").await?;
        disk.sync();
        let mut new = File::create("/config.new").await?;
        new.write_all(b"new").await?;
        if syncs {
            new.sync_all().await?;
        }
        fs::rename("/config.new", "/config").await?;
        disk.crash();
        fs::read_to_string("/config").await
    };
    let forgetful = outcomes(async |disk| replaced(disk, false).await);
    assert_eq!(forgetful, BTreeSet::from(["", "new", "old"].map(String::from)));
    assert_eq!(outcomes(async |disk| replaced(disk, true).await), BTreeSet::from(["new", "old"].map(String::from)));
}

#[test]
fn names_of_a_directory_are_lost_from_the_last_one_on_and_those_removed_come_back() {
    let names = outcomes(async |disk| {
        fs::create_dir("/names").await?;
        fs::write("/names/0", "").await?;
        disk.sync();
        for (before, name) in [("0", "1"), ("1", "2")] {
            fs::write(format!("/names/{name}"), "").await?;
            fs::remove_file(format!("/names/{before}")).await?;
        }
        disk.crash();
        names_in("/names").await
    });
    let names: Vec<String> = names.into_iter().map(|names| names.into_iter().collect()).collect();
    assert_eq!(names, ["0", "01", "1", "12", "2"]);
}

async fn names_in(dir: &str) -> std::io::Result<BTreeSet<String>> {
    let (mut names, mut entries) = (BTreeSet::new(), fs::read_dir(dir).await?);
    while let Some(entry) = entries.next_entry().await? {
        assert!(names.insert(entry.file_name().into_string().unwrap()));
    }
    Ok(names)
}

#[test]
fn a_rename_between_directories_happens_as_a_whole_or_not_at_all() {
    let places = outcomes(async |disk| {
        fs::create_dir("/a").await?;
        fs::write("/a/file", "content").await?;
        disk.sync();
        fs::create_dir_all("/b/c").await?; // which may be lost, and must not take the file with it
        fs::write("/a/other", "").await?;
        fs::rename("/a/file", "/b/c/file").await?;
        disk.crash();
        let places = (fs::try_exists("/a/file").await?, fs::try_exists("/b/c/file").await?);
        assert!(places.0 != places.1, "{places:?}");
        Ok(places)
    });
    assert_eq!(places.len(), 2);
    for seed in 0..50 {
        run(seed, async |disk| {
            fs::create_dir("/a").await?;
            fs::write("/a/file", "content").await?;
            disk.sync();
            fs::create_dir_all("/b/c").await?;
            fs::rename("/a/file", "/b/c/file").await?;
            sync_dir("/a").await?; // that the file has left brings it to the disk elsewhere
            disk.crash();
            assert_eq!(fs::read("/b/c/file").await?, b"content");
            fs::rename("/b", "/d").await?;
            fs::rename("/d/c", "/tmp/c").await?;
            assert_eq!(fs::canonicalize("/tmp/c/../c/file").await?, Path::new("/tmp/c/file"));
            Ok(())
        });
    }
}

#[test]
fn without_a_crash_nothing_is_lost_and_each_simulation_begins_with_nothing() {
    for _ in 0..2 {
        run(1, async |disk| {
            assert_eq!(names_in("/").await?, BTreeSet::from(["tmp".to_owned()]));
            fs::write("relative", "content").await?;
            assert_eq!(fs::read("/relative").await?, b"content");
            assert_eq!(fs::canonicalize(".").await?, Path::new("/"));
            assert_eq!(number(fs::metadata("Cargo.toml").await), Some(Errno::NOENT));
            assert!(std::fs::metadata("Cargo.toml").is_ok() && std::fs::metadata("relative").is_err());
            assert!(format!("{disk:?}").contains("host: 0"));
            Ok(())
        });
    }
}

#[test]
fn an_operation_takes_virtual_time_and_the_seed_says_how_much_and_what_is_lost() {
    let story = |seed| {
        run(seed, async |disk| {
            let mut file = File::create("/file").await?;
            for _ in 0..20 {
                file.write_all(b"x").await?;
            }
            let time = current().elapsed();
            assert!(time > Duration::from_millis(2) && time < Duration::from_millis(21), "{time:?}");
            fs::rename("/file", "/other").await?;
            disk.sync();
            OpenOptions::new().append(true).open("/other").await?.write_all(&[b'y'; 20]).await?;
            for number in 0..20 {
                fs::write(format!("/tmp/{number}"), "").await?;
            }
            let mut order = Vec::new();
            let mut entries = fs::read_dir("/tmp").await?;
            while let Some(entry) = entries.next_entry().await? {
                order.push(entry.file_name());
            }
            disk.crash();
            Ok((time, order, fs::read("/other").await?, names_in("/tmp").await?, current().elapsed()))
        })
    };
    assert_eq!(story(1), story(1));
    let (first, second) = (story(1), story(2));
    assert!(first.0 != second.0 && first.1 != second.1 && first.3 != second.3);
}

#[test]
fn a_full_disk_leaves_a_short_write_and_a_removed_file_makes_room() {
    run(1, async |disk| {
        disk.capacity(10_000);
        let mut file = File::create("/file").await?;
        assert_eq!(file.write(&[1; 8_000]).await?, 8_000);
        assert_eq!(file.write(&[2; 8_000]).await?, 2_000);
        assert_eq!(number(file.write(&[3; 1]).await), Some(Errno::NOSPC));
        assert_eq!(fs::metadata("/file").await?.len(), 10_000);
        file.seek(SeekFrom::Start(0)).await?;
        file.write_all(&[4; 10_000]).await?; // over what is there
        assert_eq!(fs::write("/other", "x").await.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(fs::read("/other").await?, b"");
        fs::remove_file("/file").await?;
        assert_eq!(number(fs::write("/other", "x").await), Some(Errno::NOSPC)); // it is open
        drop(file);
        fs::write("/other", "x").await
    });
}

#[test]
fn after_a_failed_sync_a_second_one_succeeds_and_the_data_are_gone() {
    let lost = outcomes(async |disk| {
        let mut file = File::options().read(true).write(true).create(true).open("/file").await?;
        disk.sync();
        file.write_all(b"acknowledged").await?;
        disk.errors(1.0);
        assert_eq!(number(file.sync_all().await), Some(Errno::IO));
        assert_eq!(number(file.write(b"x").await), Some(Errno::IO));
        file.seek(SeekFrom::Start(0)).await?;
        assert_eq!(number(file.read(&mut [0; 4]).await), Some(Errno::IO));
        disk.errors(0.0);
        file.sync_all().await?;
        assert_eq!(fs::read("/file").await?, b"acknowledged");
        disk.crash();
        fs::read_to_string("/file").await
    });
    assert_eq!(lost, BTreeSet::from([String::new()]));
}

#[test]
fn errors_come_at_their_rate() {
    let failed: usize = run(7, async |disk| {
        let mut file = File::create("/file").await?;
        disk.errors(0.1);
        let mut failed = 0;
        for _ in 0..1000 {
            failed += usize::from(file.write(b"x").await.is_err());
        }
        Ok(failed)
    });
    assert!((60..140).contains(&failed), "{failed}");
    let refused = catch_unwind(|| run(1, async |disk| Ok(disk.errors(1.5).clone())));
    assert!(refused.is_err());
}

#[test]
fn o_dsync_syncs_each_write() {
    let content = outcomes(async |disk| {
        let flags = rustix::fs::OFlags::DSYNC.bits() as i32;
        let mut file = File::options().write(true).create(true).custom_flags(flags).open("/file").await?;
        sync_dir("/").await?;
        file.write_all(b"content").await?;
        disk.crash();
        fs::read_to_string("/file").await
    });
    assert_eq!(content, BTreeSet::from(["content".to_owned()]));
}

#[test]
fn metadata_are_those_of_the_simulated_file() {
    run(1, async |_| {
        let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_800);
        sleep(Duration::from_secs(5)).await;
        let file = File::create("/file").await?;
        file.set_len(1 << 40).await?;
        let metadata = file.metadata().await?;
        assert!(metadata.is_file() && metadata.len() == 1 << 40);
        let age = metadata.modified()?.duration_since(begin).unwrap();
        assert!(age >= Duration::from_secs(5) && age <= current().elapsed(), "{age:?}");
        fs::hard_link("/file", "/second").await?;
        fs::symlink("file", "/link").await?;
        use std::os::unix::fs::MetadataExt;
        let ino = async |path| fs::metadata(path).await.map(|metadata| metadata.ino());
        assert!(ino("/file").await? == ino("/second").await? && ino("/file").await? != ino("/tmp").await?);
        assert!(fs::symlink_metadata("/link").await?.is_symlink());
        assert!(fs::metadata("/tmp").await?.is_dir());
        let mut permissions = metadata.permissions();
        permissions.set_readonly(true);
        fs::set_permissions("/second", permissions).await?;
        assert!(file.metadata().await?.permissions().readonly());
        file.set_len(3).await?;
        assert_eq!(file.metadata().await?.len(), 3);
        let before = fs::metadata("/file").await?.modified()?;
        sleep(Duration::from_secs(7)).await;
        assert_eq!(fs::metadata("/file").await?.modified()?, before);
        File::options().append(true).open("/file").await?.write_all(b"x").await?;
        assert!(fs::metadata("/file").await?.modified()? >= before + Duration::from_secs(7));
        Ok(())
    });
}

#[test]
fn metadata_do_not_depend_on_the_real_directory_for_temporary_files() {
    let mut command = own_test("metadata_are_those_of_the_simulated_file");
    let output = command.env("TMPDIR", "/nonexistent").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn what_the_real_file_system_refuses_is_no_error_of_the_simulated_one() {
    run(1, async |_| {
        let file = File::create("/file").await?;
        file.set_len(1 << 60).await?;
        match file.metadata().await {
            Ok(metadata) => assert_eq!(metadata.len(), 1 << 60), // some real ones have room for that
            Err(error) => {
                let text = error.to_string();
                assert!(error.kind() == ErrorKind::Other && error.raw_os_error().is_none(), "{error:?}");
                assert!(text.contains("of 1152921504606846976 bytes") && text.contains("/mini-sim-"), "{text}");
            }
        }
        file.set_len(3).await?;
        assert_eq!(file.metadata().await?.len(), 3);
        Ok(())
    });
}

#[test]
fn what_stands_in_for_simulated_files_is_gone_with_the_simulation() {
    in_child("what_stands_in_for_simulated_files_is_gone_with_the_simulation", || {
        let prefix = format!("mini-sim-{}-", std::process::id());
        let count = || {
            let names = std::fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_str().unwrap().starts_with(&prefix)).count()
        };
        run(1, async |_| {
            fs::create_dir("/dir").await?;
            fs::metadata("/dir").await?;
            assert_eq!(count(), 1);
            Ok(())
        });
        assert_eq!(count(), 0);
    });
}

#[test]
fn what_needs_a_descriptor_says_that_the_file_is_simulated() {
    let text = |panics: Box<dyn std::any::Any + Send>| match panics.downcast::<&str>() {
        Ok(text) => text.to_string(),
        Err(panics) => *panics.downcast::<String>().unwrap(),
    };
    run(1, async |_| {
        use std::os::fd::AsFd;
        let file = File::create("/file").await?;
        assert_eq!(format!("{file:?}"), r#"File { fd: -1, path: "/file", .. }"#);
        let refused = text(catch_unwind(AssertUnwindSafe(|| _ = file.as_fd())).unwrap_err());
        assert!(refused.contains("`mini::fs::File::as_fd` is not possible in a simulation"), "{refused}");
        let refused = text(catch_unwind(AssertUnwindSafe(|| drop(file.try_into_std()))).unwrap_err());
        assert!(refused.contains("into_std"), "{refused}");
        let real = std::fs::File::open("Cargo.toml")?;
        let refused = text(catch_unwind(AssertUnwindSafe(|| drop(File::from_std(real)))).unwrap_err());
        assert!(refused.contains("`mini::fs::File::from_std` is not possible in a simulation"), "{refused}");
        let mut options = std::fs::OpenOptions::new();
        let unknown = OpenOptions::from(options.read(true).clone()).open("/file").await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Unsupported);
        let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
        let direct = OpenOptions::new().read(true).custom_flags(flags).open("/file").await.unwrap_err();
        assert!(direct.to_string().contains("the flags 0o40000 of open(2) are not simulated"), "{direct}");
        Ok(())
    });
}

#[test]
fn a_loss_is_a_fault_and_the_report_has_the_one_that_is_needed() {
    let failure = catch_unwind(|| {
        Seeds::new("sim_fs", "loses", 200).run(|| async {
            for beside in ["/tmp/beside", "/tmp/this"] {
                fs::write(beside, "which nobody misses").await?;
            }
            let mut log = File::create("/log").await?;
            log.write_all(b"paid").await?;
            log.sync_data().await?; // and the directory is not synced
            current().disk().crash();
            fs::read("/log").await
        });
    });
    let text = *failure.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("No such file or directory"), "{text}");
    let shrunk = text.lines().find(|line| line.contains("shrunk: ")).unwrap();
    let needed = "disk of test: the last 1 of 1 unsynced changes of names in `/` lost in a crash at 0.0";
    assert!(shrunk.contains("shrunk: 1 of ") && shrunk.contains(needed), "{shrunk}");
    assert!(!shrunk.contains("1 of 1 faults"), "{shrunk}");
    let seed = text[5..].split(':').next().unwrap().parse().unwrap();
    let lost = async || {
        fs::write("/tmp/file", "").await.unwrap();
        current().disk().crash();
        assert!(fs::try_exists("/tmp/file").await.unwrap());
    };
    let seed = (seed..).find(|&seed| Sim::new(seed).run(lost()).is_err()).unwrap();
    assert_eq!(Sim::new(seed).run(lost()).unwrap_err().faults().len(), 1);
    Sim::new(seed).skip([1..=1]).run(lost()).unwrap();
}
