//! The same random operations on a simulated disk and on a real one: the same outcomes, errors and files.

use std::fmt::Debug;
use std::io::{self, ErrorKind, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mini::fs::{self, File, OpenOptions};
use mini::sim::Sim;
use mini_tests::net_support::ScratchDir;
use rustix::fs::OFlags;

/// Random choices: the generator of Vigna's SplitMix64.
struct Choices(u64);

impl Choices {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// A path below `base`, or up to two directories above it.
    fn path(&mut self, base: &Path) -> PathBuf {
        let mut path = base.to_str().unwrap().to_owned();
        let mut ups = 2;
        for _ in 0..1 + self.below(3) {
            let part = match self.below(12) {
                0 => ".",
                1 if ups > 0 => {
                    ups -= 1;
                    ".."
                }
                _ => self.of(&["a", "b", "c"]),
            };
            path = path + "/" + part;
        }
        if self.one_in(8) {
            path.push('/');
        }
        path.into()
    }

    /// What a link points to: never above `base`, however many links there are.
    fn target(&mut self, base: &Path) -> PathBuf {
        let name = self.of(&["a", "b", "c", "a/b", "b/", "./c", "a//b", ""]);
        if self.one_in(3) { base.join(name) } else { name.into() }
    }
}

/// An outcome, so that two can be compared: an error by its number, or else its kind. That options contradict each
/// other is told by the standard library without a number, or with one, as its version is.
fn told<T: Debug>(result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => match error.raw_os_error() {
            Some(number) if error.kind() != ErrorKind::InvalidInput => format!("error {:?} {number}", error.kind()),
            _ => format!("error {:?}", error.kind()),
        },
    }
}

/// What is in a file: each byte that repeats, and where it ends.
fn runs(bytes: Vec<u8>) -> Vec<(u8, usize)> {
    let ends = (1..=bytes.len()).filter(|&end| bytes.get(end) != Some(&bytes[end - 1]));
    ends.map(|end| (bytes[end - 1], end)).collect()
}

async fn status(path: &Path, follows: bool) -> io::Result<(u64, bool, bool, bool, u32)> {
    let metadata = if follows { fs::metadata(path).await? } else { fs::symlink_metadata(path).await? };
    // Only the system knows how long a directory is.
    let length = if metadata.is_dir() { 0 } else { metadata.len() };
    let owner = if metadata.is_symlink() { 0 } else { metadata.permissions().mode() & 0o700 };
    Ok((length, metadata.is_file(), metadata.is_dir(), metadata.is_symlink(), owner))
}

/// Names and types in a directory, sorted.
async fn list(path: &Path) -> io::Result<Vec<(std::ffi::OsString, String, u64)>> {
    let (mut all, mut entries) = (Vec::new(), fs::read_dir(path).await?);
    while let Some(entry) = entries.next_entry().await? {
        let metadata = entry.metadata().await?;
        let length = if metadata.is_dir() { 0 } else { metadata.len() };
        assert_eq!(entry.path(), path.join(entry.file_name()));
        all.push((entry.file_name(), format!("{:?}", entry.file_type().await?), length));
    }
    all.sort();
    Ok(all)
}

/// All files below `base`, with what is in them.
async fn whole(base: &Path) -> Vec<String> {
    let (mut all, mut left) = (Vec::new(), vec![base.to_owned()]);
    while let Some(dir) = left.pop() {
        for (name, kind, _) in list(&dir).await.unwrap() {
            let path = dir.join(name);
            let looked = status(&path, false).await.unwrap();
            let content = match looked {
                (_, true, ..) => told(fs::read(&path).await.map(runs)),
                (_, _, _, true, _) => told(fs::read_link(&path).await),
                _ => {
                    left.push(path.clone());
                    String::new()
                }
            };
            all.push(format!("{path:?} {kind} {looked:?} {content}"));
        }
    }
    all
}

fn options(choices: &mut Choices) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(!choices.one_in(3)).write(!choices.one_in(3)).append(choices.one_in(6));
    options.truncate(choices.one_in(4)).mode(choices.of(&[0o644, 0o600]));
    match choices.below(4) {
        // Together with `create` it means something else before Linux 6.4.
        0 => options.custom_flags(OFlags::DIRECTORY.bits() as i32),
        1 => options.custom_flags(OFlags::NOFOLLOW.bits() as i32).create(choices.one_in(2)),
        _ => options.create(choices.one_in(2)).create_new(choices.one_in(8)),
    };
    options
}

/// An operation on paths.
async fn on_paths(choices: &mut Choices, base: &Path) -> String {
    let (path, other) = (choices.path(base), choices.path(base));
    let call = choices.below(18);
    let told = match call {
        0 => told(fs::rename(&path, &other).await),
        1 => told(fs::remove_file(&path).await),
        2 => told(fs::remove_dir(&path).await),
        3 => told(fs::create_dir(&path).await),
        4 => told(fs::create_dir_all(&path).await),
        5 if choices.one_in(4) => told(fs::remove_dir_all(&path).await),
        6 => told(fs::hard_link(&path, &other).await),
        7 => {
            let target = choices.target(base);
            format!("{target:?}: {}", told(fs::symlink(&target, &path).await))
        }
        8 => told(fs::read_link(&path).await),
        9 => told(fs::canonicalize(&path).await),
        10 => told(status(&path, true).await),
        11 => told(status(&path, false).await),
        12 => told(fs::try_exists(&path).await),
        13 => told(list(&path).await),
        14 => told(fs::copy(&path, &other).await),
        15 => told(fs::write(&path, vec![choices.below(256) as u8; choices.below(9000) as usize]).await),
        16 => told(fs::read(&path).await.map(runs)),
        _ => {
            // Only root enters a directory that may not be executed.
            let is_dir = fs::metadata(&path).await.is_ok_and(|metadata| metadata.is_dir());
            let mode = choices.of(if is_dir { &[0o700] } else { &[0o600, 0o700] });
            told(fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).await)
        }
    };
    format!("call {call} {path:?} {other:?}: {told}")
}

/// Reads until the end or until `buf` is full, as a single read may be short.
async fn fill(file: &mut File, buf: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let read @ 1.. = file.read(&mut buf[filled..]).await? {
        filled += read;
    }
    Ok(filled)
}

/// An operation on an open file.
async fn on_file(choices: &mut Choices, file: &mut File) -> String {
    let is_dir = file.metadata().await.is_ok_and(|metadata| metadata.is_dir());
    match choices.below(8) {
        0 | 1 => {
            let mut buf = vec![0; choices.below(9000) as usize];
            told(fill(file, &mut buf).await.map(|read| runs(buf[..read].to_vec())))
        }
        2 | 3 => told(file.write(&vec![choices.below(256) as u8; choices.below(9000) as usize]).await),
        // What the position in a directory means is up to the file system.
        _ if is_dir => told(file.sync_all().await),
        4 => {
            let offset = choices.below(20_000) as i64 - 10_000;
            let start = SeekFrom::Start(offset as u64 % 10_000);
            told(file.seek(choices.of(&[SeekFrom::Current(offset), SeekFrom::End(offset), start])).await)
        }
        5 => told(file.set_len(choices.below(20_000)).await),
        6 => told(file.sync_data().await),
        _ => told(file.metadata().await.map(|metadata| metadata.len())),
    }
}

/// What comes of the operations that `seed` chooses.
async fn story(seed: u64, outside: &Path) -> Vec<String> {
    let base = outside.join("1/2/3");
    fs::create_dir_all(&base).await.unwrap();
    let mut all = steps(seed, &base, 150).await;
    all.extend(whole(outside).await);
    all
}

/// So many operations, and what comes of each.
async fn steps(seed: u64, base: &Path, count: usize) -> Vec<String> {
    let (mut choices, mut all) = (Choices(seed), Vec::new());
    let mut files: Vec<File> = Vec::new();
    for _ in 0..count {
        let line = match choices.below(10) {
            0 | 1 if files.len() < 5 => {
                let (path, options) = (choices.path(base), options(&mut choices));
                let opened = options.open(&path).await;
                let line = format!("{options:?} {path:?}: {}", told(opened.as_ref().map(|_| ()).map_err(again)));
                files.extend(opened);
                line
            }
            2 if !files.is_empty() => {
                let file = files.swap_remove(choices.below(files.len() as u64) as usize);
                let clone = file.try_clone().await;
                files.extend(clone.into_iter().filter(|_| choices.one_in(2)));
                "closed".to_owned()
            }
            3..=6 if !files.is_empty() => {
                let at = choices.below(files.len() as u64) as usize;
                on_file(&mut choices, &mut files[at]).await
            }
            _ => on_paths(&mut choices, base).await,
        };
        all.push(line);
    }
    all
}

/// The error once more.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

#[test]
fn what_was_synced_survives_crashes_and_what_was_not_leaves_whole_directories() {
    let (mut losses, seeds) = (0, 60);
    for seed in 0..seeds {
        let end = Sim::new(seed).run(async {
            let disk = mini::sim::current().disk();
            fs::create_dir_all("/1/2/3").await.unwrap();
            disk.sync();
            let (mut lost, mut choices) = (false, Choices(seed));
            for round in 0..10 {
                for dir in ["/1", "/1/2", "/1/2/3"] {
                    if choices.one_in(3)
                        && let Ok(dir) = File::open(dir).await
                    {
                        dir.sync_all().await.unwrap();
                    }
                }
                steps(seed << 8 | round, Path::new("/1/2/3"), 40).await;
                if choices.one_in(2) {
                    disk.sync();
                    let before = whole(Path::new("/")).await;
                    disk.crash();
                    assert_eq!(whole(Path::new("/")).await, before);
                } else {
                    let before = whole(Path::new("/")).await;
                    disk.crash();
                    lost |= whole(Path::new("/")).await != before;
                }
            }
            lost
        });
        losses += u32::from(end.unwrap());
    }
    assert!(losses > 50, "{losses} of {seeds}");
}

#[test]
fn a_simulated_disk_does_what_a_real_one_does() {
    let mut errors = std::collections::BTreeMap::<String, u32>::new();
    let seeds = std::env::var("MINI_SEEDS").map_or(60, |seeds| seeds.parse().expect("a number of seeds"));
    for seed in 0..seeds {
        let dir = ScratchDir::new("same");
        let base = dir.path().canonicalize().unwrap();
        let real = mini::block_on(story(seed, &base));
        let simulated = Sim::new(seed).run(async {
            fs::create_dir_all(&base).await.unwrap();
            story(seed, &base).await
        });
        for (step, (real, simulated)) in real.iter().zip(&simulated.unwrap()).enumerate() {
            assert!(real == simulated, "seed {seed}, step {step}:\n     real {real:.400}\nsimulated {simulated:.400}");
            if let Some((_, error)) = real.split_once("error ") {
                *errors.entry(error.to_owned()).or_default() += 1;
            }
        }
    }
    // The operations come to what they are to compare.
    let expected = "AlreadyExists DirectoryNotEmpty FilesystemLoop InvalidInput IsADirectory NotADirectory NotFound \
                    PermissionDenied ResourceBusy Uncategorized";
    for kind in expected.split(' ') {
        let count: u32 = errors.iter().filter(|(error, _)| error.starts_with(kind)).map(|(_, count)| count).sum();
        assert!(count > 10, "{kind} in {errors:?}");
    }
}
