//! Bugs that need a crash, or a disk that fails: what was written and not synced is lost.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use mini::fs::{self, File, OpenOptions};
use mini::sim::{current, rand};
use mini::time::{Duration, sleep};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

async fn sync_dir(path: &str) -> io::Result<()> {
    File::open(path).await?.sync_all().await
}

/// What a log says of itself, and what it has promised.
#[derive(Default)]
struct Log {
    /// Records that were acknowledged.
    acknowledged: Cell<u64>,
    /// Records that were there when it was started, if it was since the crash.
    found: Cell<Option<u64>>,
}

/// Runs `serve`, crashes its host at a time that the seed determines, and looks what it finds afterwards.
async fn crash_amid<F: Future<Output = io::Result<()>> + 'static>(serve: impl Fn(Rc<Log>) -> F + 'static) {
    let (sim, log) = (current(), Rc::new(Log::default()));
    let kept = log.clone();
    sim.host("db", move || serve(kept.clone()));
    sleep(ms(50 + rand() % 800)).await;
    log.found.set(None);
    sim.crash("db");
    let promised = log.acknowledged.get();
    sim.restart("db");
    sleep(ms(20)).await;
    let lacks = log.found.get().is_some_and(|found| found < promised);
    assert!(!lacks, "the log lacks what it has acknowledged");
}

/// Opens the log, and counts the records before the first gap.
async fn open(log: &Log) -> io::Result<(File, u64)> {
    current().disk().errors(0.0);
    let file = OpenOptions::new().create(true).append(true).open("/log").await?;
    file.sync_all().await?;
    sync_dir("/").await?;
    let content = fs::read("/log").await?;
    let records = (1..).zip(content.chunks(8)).take_while(|(number, record)| *record == u64::to_be_bytes(*number));
    let records = records.count() as u64;
    log.found.set(Some(records));
    Ok((file, records))
}

/// A log is synced after every tenth record, and acknowledges what it has only written.
pub(super) async fn missed_fsync(is_mended: bool) {
    crash_amid(move |log: Rc<Log>| async move {
        let (mut file, records) = open(&log).await?;
        for record in records + 1.. {
            file.write_all(&record.to_be_bytes()).await?;
            if is_mended || record % 10 == 0 {
                file.sync_data().await?;
            }
            log.acknowledged.set(record);
            sleep(ms(10)).await;
        }
        Ok(())
    })
    .await;
}

/// A sync that fails is tried again, and succeeds without what the first one has lost.
///
/// Published: PostgreSQL took a second fsync(2) for a proof, which on Linux it is not (C. Ringer, PostgreSQL's handling
/// of fsync() errors is unsafe and risks data loss at least on XFS, pgsql-hackers, March 2018). Since 11.2 it stops
/// where a sync fails, and starts again from its log (<https://www.postgresql.org/docs/release/11.2/>).
pub(super) async fn repeated_fsync(is_mended: bool) {
    crash_amid(move |log: Rc<Log>| async move {
        let (mut file, records) = open(&log).await?;
        current().disk().errors(0.02);
        for record in records + 1.. {
            // A write that fails has written nothing.
            while file.write_all(&record.to_be_bytes()).await.is_err() {}
            while file.sync_data().await.is_err() {
                if is_mended {
                    return Ok(()); // to start again
                }
            }
            log.acknowledged.set(record);
            sleep(ms(10)).await;
        }
        Ok(())
    })
    .await;
}

/// A new file is renamed over the old one before its content is synced: a crash may leave the name without the content.
///
/// Published: LevelDB did so with its file CURRENT, which was empty or full of zeros after a power cut
/// (<https://github.com/google/leveldb/issues/74>).
pub(super) async fn renamed_too_early(is_mended: bool) {
    let (sim, is_torn) = (current(), Rc::new(Cell::new(false)));
    let seen = is_torn.clone();
    sim.host("db", move || {
        let seen = seen.clone();
        async move {
            match fs::read_to_string("/CURRENT").await {
                Ok(content) => seen.set(!content.starts_with("MANIFEST-")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            for number in 1.. {
                let mut file = File::create("/CURRENT.new").await?;
                file.write_all(format!("MANIFEST-{number}").as_bytes()).await?;
                if is_mended {
                    file.sync_all().await?;
                }
                fs::rename("/CURRENT.new", "/CURRENT").await?;
                sync_dir("/").await?;
                sleep(ms(100)).await;
                file.sync_all().await?; // as the system does it by itself, later
                sleep(ms(900)).await;
            }
            Ok(())
        }
    });
    sleep(ms(rand() % 10_000)).await;
    sim.crash("db");
    sim.restart("db");
    sleep(ms(20)).await;
    assert!(!is_torn.get(), "the file has its new name, and not its content");
}
