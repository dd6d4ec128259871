//! Files whose bytes the kernel makes as they are read: those of procfs and sysfs.

use super::*;

/// A file whose bytes the kernel makes as they are read, so that it looks empty.
#[test]
fn a_dropped_read_of_procfs_has_taken_nothing() {
    on_one_thread(|| async {
        let expected = std_fs::read("/proc/version").unwrap();
        let mut file = File::open("/proc/version").await.unwrap();
        let (mut buf, mut short) = ([0; 8], [0; 3]);
        give_up(file.read(&mut buf)).await;
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 0);
        give_up(file.read(&mut buf)).await;
        assert_eq!(file.read(&mut short).await.unwrap(), 3);
        assert_eq!((short, file.seek(SeekFrom::Current(0)).await.unwrap()), (*b"Lin", 3));
        give_up(file.read(&mut buf)).await;
        file.seek(SeekFrom::Start(2)).await.unwrap();
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, expected[2..]);
        file.seek(SeekFrom::Start(1)).await.unwrap();
        give_up(file.read(&mut buf)).await;
        assert_eq!(file.into_std().await.stream_position().unwrap(), 1);
    });
}

/// Most files of sysfs say that they have 4,096 bytes.
#[test]
fn a_file_that_is_shorter_than_it_says_ends() {
    on_one_thread(|| async {
        let path = "/sys/kernel/mm/transparent_hugepage/enabled";
        let Ok(expected) = std_fs::read(path) else { return };
        let mut content = Vec::new();
        let mut file = File::open(path).await.unwrap();
        file.read_to_end(&mut content).await.unwrap();
        assert_eq!(content, expected);
        assert_eq!(file.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn a_long_file_of_procfs_comes_record_by_record() {
    on_one_thread(|| async {
        let mut content = String::new();
        // Other processes may load modules meanwhile.
        let same = async |content: &mut String| {
            content.clear();
            let mut file = File::open("/proc/kallsyms").await.unwrap();
            let mut buf = vec![0; 1 << 14];
            while let read @ 1.. = file.read(&mut buf).await.unwrap() {
                content.push_str(std::str::from_utf8(&buf[..read]).unwrap());
            }
            std_fs::read_to_string("/proc/kallsyms").unwrap() == *content
        };
        if std_fs::read("/proc/kallsyms").is_ok() {
            assert!(same(&mut content).await || same(&mut content).await || same(&mut content).await);
        }
    });
}

#[test]
fn a_write_begins_before_what_a_dropped_read_of_procfs_has_taken() {
    on_one_thread(|| async {
        let path = "/proc/self/task/self/comm".replace("task/self", &format!("task/{}", std::process::id()));
        let name = std_fs::read(&path).unwrap();
        let mut file = File::options().read(true).write(true).open(&path).await.unwrap();
        let mut buf = [0; 4];
        give_up(file.read(&mut buf)).await;
        settled().await;
        file.write_all(&name).await.unwrap();
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 0); // a write to this file moves no position
    });
}

#[test]
fn clones_that_read_procfs_at_the_same_time_share_the_bytes() {
    on_one_thread(|| async {
        let expected = std_fs::read("/proc/version").unwrap();
        let mut file = File::open("/proc/version").await.unwrap();
        let mut clone = file.try_clone().await.unwrap();
        let (mut first, mut then) = ([0; 8], [0; 3]);
        give_up(file.read(&mut first)).await;
        settled().await;
        clone.read_exact(&mut then).await.unwrap();
        file.read_exact(&mut first).await.unwrap();
        assert_eq!([&first[..], &then].concat(), expected[..11]);
    });
}
