//! Tasks keep the span they were spawned in, however they are spawned and however they end.

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, Once};
use std::task::Poll;

use mini::task::{JoinSet, yield_now};
use mini_tests::net_support::in_each_runtime;
use tracing::{Span, info_span};

fn subscribe() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap());
}

/// The name of the span that is current here.
fn here() -> Option<&'static str> {
    Span::current().metadata().map(|metadata| metadata.name())
}

/// Notes where it is dropped.
struct Dropped(Arc<Mutex<Vec<Option<&'static str>>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let place = here();
        self.0.lock().unwrap().push(place);
    }
}

#[test]
fn every_poll_is_inside_the_span_of_the_spawn() {
    subscribe();
    in_each_runtime(|| async {
        let task = info_span!("request").in_scope(|| {
            mini::spawn(async {
                let first = here();
                yield_now().await;
                mini::task::idle().await;
                (first, here())
            })
        });
        assert_eq!(task.await.unwrap(), (Some("request"), Some("request")));
        assert_eq!(here(), None);
    });
}

#[test]
fn all_that_spawns_keeps_the_span() {
    subscribe();
    in_each_runtime(|| async {
        let mut set = JoinSet::new();
        let (blocking, local, named) = info_span!("request").in_scope(|| {
            set.spawn(async { here() });
            set.spawn_local(async { here() });
            set.spawn_blocking(here);
            (
                mini::spawn_blocking(here),
                mini::spawn_local(async { here() }),
                mini::task::Builder::new().name("named").spawn(async { here() }),
            )
        });
        for handle in [blocking, local, named] {
            assert_eq!(handle.await.unwrap(), Some("request"));
        }
        while let Some(place) = set.join_next().await {
            assert_eq!(place.unwrap(), Some("request"));
        }
    });
}

#[test]
fn tasks_of_tasks_inherit_and_neighbours_do_not() {
    subscribe();
    in_each_runtime(|| async {
        let outer = info_span!("outer").in_scope(|| mini::spawn(async { mini::spawn(async { here() }).await }));
        let plain = mini::spawn(async {
            yield_now().await;
            here()
        });
        assert_eq!(outer.await.unwrap().unwrap(), Some("outer"));
        assert_eq!(plain.await.unwrap(), None);
    });
}

#[test]
fn a_future_is_dropped_inside_its_span() {
    subscribe();
    in_each_runtime(|| async {
        let places = Arc::new(Mutex::new(Vec::new()));
        let spawn = |ends: bool| {
            let kept = Dropped(places.clone());
            info_span!("request").in_scope(|| {
                mini::spawn(async move {
                    let _kept = kept;
                    if !ends {
                        pending::<()>().await;
                    }
                })
            })
        };
        spawn(true).await.unwrap();
        let task = spawn(false);
        yield_now().await;
        assert!(task.cancel().await.unwrap_err().is_cancelled());
        assert_eq!(*places.lock().unwrap(), [Some("request"); 2]);
    });
}

/// The only thread of the pool is busy with another job until after the end.
#[test]
fn a_job_that_never_begins_is_dropped_inside_its_span() {
    subscribe();
    let runtime = mini::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    drop(runtime.spawn_blocking(move || ended.recv()));
    let places = Arc::new(Mutex::new(Vec::new()));
    let kept = Dropped(places.clone());
    let job = info_span!("request").in_scope(|| runtime.spawn_blocking(move || drop(kept)));
    drop(runtime.shutdown_timeout(std::time::Duration::ZERO));
    assert!(mini::block_on(job).unwrap_err().is_cancelled());
    assert_eq!(*places.lock().unwrap(), [Some("request")]);
    drop(end);
}

#[test]
fn a_panic_leaves_the_span() {
    subscribe();
    in_each_runtime(|| async {
        let task = info_span!("request").in_scope(|| mini::spawn(async { std::panic::resume_unwind(Box::new(())) }));
        let task: mini::task::JoinHandle<()> = task;
        assert!(task.await.unwrap_err().is_panic());
        assert_eq!(mini::spawn(async { here() }).await.unwrap(), None);
        assert_eq!(here(), None);
    });
}

#[test]
fn the_span_is_closed_with_the_task() {
    subscribe();
    in_each_runtime(|| async {
        let span = info_span!("request");
        let again = span.clone();
        let task = span.in_scope(|| mini::spawn(poll_fn(|_| Poll::Ready(()))));
        task.await.unwrap();
        drop(span);
        assert_eq!(again.metadata().unwrap().name(), "request");
        assert!(again.has_field("no such field") || again.id().is_some());
    });
}
