//! Blocking jobs of a group.

use mini::task::shield;
use mini_tests::{OnDrop, oneshot};

use super::*;

/// Occupies the one blocking thread of the runtime that this is called in, until the sender is dropped.
fn occupy() -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    mini::spawn_blocking(move || released.recv().unwrap_err());
    release
}

#[test]
fn a_job_that_is_aborted_in_the_queue_leaves_when_its_captures_are_gone() {
    within(LIMIT, || {
        let runtime = multi_thread(1).max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (group, (seen, receive), (end, ends)) = (Group::new(), mpsc::channel(), oneshot::<()>());
            let release = occupy();
            let (above, mut ends) = (group.clone(), Some(ends));
            let captured = OnDrop(move || {
                let before = above.len();
                drop(shield(LIMIT, ends.take().unwrap()));
                seen.send([before, above.len()]).unwrap();
            });
            let job = group.spawn_blocking(move || drop(captured));
            job.abort();
            drop(release);
            assert_eq!(receive.recv(), Ok([1, 2]), "the job, and then also what it has shielded");
            end.send(());
            group.wait().await;
            assert!(job.await.unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn a_job_that_is_discarded_at_shutdown_leaves_when_its_captures_are_gone() {
    within(LIMIT, || {
        let runtime = multi_thread(1).max_blocking_threads(1).shutdown_grace(Duration::ZERO).build().unwrap();
        let (group, (seen, receive)) = (Group::new(), mpsc::channel());
        let inside = runtime.enter();
        let release = occupy();
        let above = group.clone();
        let captured = OnDrop(move || seen.send(above.len()).unwrap());
        group.spawn_blocking(move || drop(captured));
        drop(inside);
        drop(runtime);
        assert_eq!((receive.recv(), group.len()), (Ok(1), 0));
        drop(release);
    });
}

#[test]
fn tasks_of_a_runtime_in_a_job_are_no_members_of_its_group() {
    within(LIMIT, || {
        mini::block_on(async {
            let group = Group::new();
            let inside = group.clone();
            let job = move || {
                let looks = || {
                    let group = inside.clone();
                    async move {
                        let is_exempt = pin!(group.wait()).poll(&mut Context::from_waker(Waker::noop())).is_ready();
                        drop(shield(Duration::ZERO, pending::<()>()));
                        (is_exempt, group.len())
                    }
                };
                Builder::new_current_thread().build().unwrap().block_on(async {
                    assert_eq!(mini::spawn(looks()).await.unwrap(), (false, 1), "the job alone");
                    assert_eq!(looks().await, (true, 2), "the future of the job is a part of it");
                });
            };
            group.spawn_blocking(job).await.unwrap();
        });
    });
}
