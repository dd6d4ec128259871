//! Files: what was begun is carried out, once, and leaves nothing open; what was read is there for the next read.

use std::fs::Permissions;
use std::io::SeekFrom;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mini::fs::{self, DirBuilder, File, OpenOptions};
use mini_tests::net_support::{ScratchDir, fifo};
use mini_tests::until;

use crate::List;

pub(crate) async fn rows(list: &mut List) {
    let dir = ScratchDir::new("dropped");
    let path = dir.path().join("file");
    std::fs::write(&path, "content").unwrap();
    opens(list, dir.path(), &path).await;
    wholes(list, dir.path(), &path).await;
    names(list, dir.path(), &path).await;
    dirs(list, dir.path()).await;
    opened(list, &path).await;
    positions(list, &path).await;
    fifos(list).await;
}

async fn opens(list: &mut List, dir: &Path, path: &Path) {
    begins!(list, File::open(path));
    begins!(list, File::create(dir.join("created")));
    begins!(list, File::create_new(dir.join("new")));
    begins!(list, OpenOptions::new().read(true).open(path));
    until(|| dir.join("created").exists() && dir.join("new").exists()).await;
}

async fn wholes(list: &mut List, dir: &Path, path: &Path) {
    begins!(list, fs::read(path));
    begins!(list, fs::read_to_string(path));
    begins!(list, fs::copy(path, dir.join("copied")));
    begins!(list, fs::write(dir.join("written"), "whole"));
    let is_there = |name, content: &str| std::fs::read(dir.join(name)).is_ok_and(|found| found == content.as_bytes());
    until(|| is_there("copied", "content") && is_there("written", "whole")).await;
}

async fn names(list: &mut List, dir: &Path, path: &Path) {
    begins!(list, fs::metadata(path));
    begins!(list, fs::try_exists(path));
    begins!(list, fs::canonicalize(path));
    begins!(list, fs::hard_link(path, dir.join("hard")));
    begins!(list, fs::symlink(path, dir.join("soft")));
    until(|| dir.join("hard").exists() && dir.join("soft").exists()).await;
    begins!(list, fs::symlink_metadata(dir.join("soft")));
    begins!(list, fs::read_link(dir.join("soft")));
    begins!(list, fs::set_permissions(dir.join("hard"), Permissions::from_mode(0o600)));
    begins!(list, fs::rename(dir.join("hard"), dir.join("renamed")));
    until(|| dir.join("renamed").exists()).await;
    begins!(list, fs::remove_file(dir.join("renamed")));
    until(|| !dir.join("renamed").exists()).await;
}

async fn dirs(list: &mut List, dir: &Path) {
    begins!(list, fs::create_dir(dir.join("a")));
    begins!(list, fs::create_dir_all(dir.join("b/c")));
    begins!(list, DirBuilder::new().create(dir.join("d")));
    until(|| ["a", "b/c", "d"].iter().all(|name| dir.join(name).exists())).await;
    begins!(list, fs::remove_dir(dir.join("a")));
    begins!(list, fs::remove_dir_all(dir.join("b")));
    until(|| !["a", "b"].iter().any(|name| dir.join(name).exists())).await;

    begins!(list, fs::read_dir(dir));
    let mut entries = fs::read_dir(dir).await.unwrap();
    let is_taken = begins!(list, entries.next_entry());
    let mut found = usize::from(is_taken);
    while let Some(entry) = entries.next_entry().await.unwrap() {
        begins!(list, entry.metadata());
        begins!(list, entry.file_type());
        found += 1;
    }
    assert_eq!(found, 7, "none was lost");
}

async fn opened(list: &mut List, path: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(path).await.unwrap();
    begins!(list, file.try_clone());
    begins!(list, file.metadata());
    begins!(list, file.set_len(7));
    begins!(list, file.set_permissions(Permissions::from_mode(0o600)));
    begins!(list, file.sync_all());
    begins!(list, file.sync_data());
    drop(file);
    begins!(list, File::open(path).await.unwrap().into_std());
    waits!(list, async {
        let file = File::open(path).await.unwrap();
        let _never_begins = file.metadata();
        file.into_std().await
    });
}

async fn positions(list: &mut List, path: &Path) {
    let mut file = OpenOptions::new().read(true).write(true).open(path).await.unwrap();
    begins!(list, file.seek(SeekFrom::Start(4)), kept);
    file.seek(SeekFrom::Start(4)).await.unwrap();
    if !begins!(list, file.write(b"one"), kept) {
        file.write_all(b"one").await.unwrap();
    }
    if !begins!(list, file.write_all(b"two"), kept) {
        file.write_all(b"two").await.unwrap();
    }
    begins!(list, file.flush(), kept);
    let content = fs::read_to_string(path).await.unwrap();
    assert_eq!(content, "contonetwo", "each was written once, where it belongs");
}

/// Where a read has to wait.
async fn fifos(list: &mut List) {
    let path = fifo();
    let mut file = OpenOptions::new().read(true).write(true).open(&path).await.unwrap();
    let (mut buf, mut rest) = ([0; 4], Vec::new());
    waits!(list, file.read(&mut buf), kept);
    waits!(list, file.read_exact(&mut buf), kept);
    waits!(list, file.read_to_end(&mut rest), kept);
    std::fs::write(&path, "ping").unwrap();
    file.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"ping", "what a dropped read had fetched goes to the next one");
}
