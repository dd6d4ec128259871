//! Operations on the file itself, independent of any position in it: its size, its permissions, its data on the disk.

use std::fs::{Metadata, Permissions};
use std::io;
use std::task::Context;

use super::super::calls;
use super::super::operation::{Operation, Step};
use super::File;
use super::open::FileHold;

impl File {
    /// Returns the metadata of the file: its size, its times, its permissions (fstat(2)). It takes no hop on local file
    /// systems of Linux.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// let file = mini::fs::File::open("Cargo.toml").await?;
    /// assert!(file.metadata().await?.len() > 0);
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fstat(2).
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    #[track_caller]
    pub fn metadata(&self) -> Operation<Metadata> {
        let (lease, about) = self.part("mini::fs::File::metadata");
        Operation::first(about, move |_| match lease.metadata_now() {
            Some(metadata) => Step::Done(metadata),
            None => Step::hop(move |_| lease.std().metadata()),
        })
    }

    /// Cuts the file, or extends it by zeros (ftruncate(2)). The position stays.
    ///
    /// A write of this `File` that was dropped before it was ready comes before it: this waits until it is done.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # let path = std::env::temp_dir().join(format!("mini-doc-len-{}", std::process::id()));
    /// let file = mini::fs::File::create(&path).await?;
    /// file.set_len(1000).await?;
    /// assert_eq!(mini::fs::read(&path).await?, [0; 1000]);
    /// # mini::fs::remove_file(&path).await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of ftruncate(2): `InvalidInput` if the file can't be written to.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on. Dropped while it waits for that write, it has not begun.
    #[track_caller]
    pub fn set_len(&self, size: u64) -> Operation<()> {
        let (lease, about) = self.part("mini::fs::File::set_len");
        let before = FileHold::new(&self.open);
        let written = move |cx: &mut Context<'_>| before.open().poll_written(cx);
        Operation::hop_after(about, written, move |_| lease.open().set_len(size))
    }

    /// Sets the permissions of the file (fchmod(2)).
    ///
    /// # Examples
    ///
    /// See [`fs::set_permissions`](crate::fs::set_permissions).
    ///
    /// # Errors
    ///
    /// Returns the errors of fchmod(2).
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on.
    #[track_caller]
    pub fn set_permissions(&self, permissions: Permissions) -> Operation<()> {
        let set = move |file: &calls::File| file.set_permissions(permissions);
        self.job("mini::fs::File::set_permissions", set)
    }

    /// Waits until the disk has what was written, with all metadata (fsync(2)).
    ///
    /// This covers every write that was ready before. For a write that was dropped, call [`flush`](File::flush) first.
    ///
    /// # Examples
    ///
    /// ```
    /// # mini::block_on(async {
    /// # let path = std::env::temp_dir().join(format!("mini-doc-sync-{}", std::process::id()));
    /// let mut file = mini::fs::File::create(&path).await?;
    /// file.write_all(b"not to be lost").await?;
    /// file.sync_all().await?;
    /// # mini::fs::remove_file(&path).await?;
    /// # Ok::<(), std::io::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of fsync(2). After an error the content of the disk is unknown; a second call may succeed
    /// without having written the data.
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on.
    #[track_caller]
    pub fn sync_all(&self) -> Operation<()> {
        self.job("mini::fs::File::sync_all", calls::File::sync_all)
    }

    /// Writes the file's data to the disk, like [`sync_all`](File::sync_all), without metadata that are not needed to
    /// read the content (fdatasync(2)).
    ///
    /// # Examples
    ///
    /// See [`sync_all`](File::sync_all).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`sync_all`](File::sync_all).
    ///
    /// # Panics
    ///
    /// Outside a mini runtime.
    ///
    /// # Cancel safety
    ///
    /// Goes on.
    #[track_caller]
    pub fn sync_data(&self) -> Operation<()> {
        self.job("mini::fs::File::sync_data", calls::File::sync_data)
    }

    #[track_caller]
    fn job<T: Send + 'static>(
        &self,
        call: &'static str,
        job: impl FnOnce(&calls::File) -> io::Result<T> + Send + Sync + 'static,
    ) -> Operation<T> {
        let (lease, about) = self.part(call);
        Operation::hop(about, move |_| job(lease.std()))
    }
}
