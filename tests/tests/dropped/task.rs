//! Tasks and what waits for them: a handle that is dropped detaches, a set keeps its outputs.

use std::future::pending;
use std::pin::pin;
use std::sync::mpsc;

use mini::runtime::Handle;
use mini::task::coop::cooperative;
use mini::task::{AbortHandle, Builder, CancelToken, Group, JoinHandle, JoinSet, Reason};
use mini::task::{consume_budget, idle, shield, unconstrained, yield_now};
use mini::{spawn, spawn_blocking, spawn_local};
use mini_tests::{Counts, never, oneshot, until};

use crate::List;

mini::task_local! {
    static NUMBER: u32;
}

pub(crate) async fn rows(list: &mut List) {
    handles(list).await;
    sets(list).await;
    waits!(list, idle());
    waits!(list, unconstrained(pending::<()>()));
    waits!(list, cooperative(pending::<()>()));
    waits!(list, NUMBER.scope(7, pending::<()>()));
    tokens(list).await;
    groups(list).await;
    scopes(list).await;
    macros(list).await;
    shields(list).await;
    begins!(list, yield_now());
    begins!(list, consume_budget());
}

async fn tokens(list: &mut List) {
    let token = CancelToken::new();
    waits!(list, token.cancelled());
    waits!(list, token.clone().cancelled_owned());
    waits!(list, token.run(pending::<()>()));
    assert!(format!("{token:?}").contains("waiters: 0"));
}

async fn groups(list: &mut List) {
    let (group, counts) = (Group::new().grace(std::time::Duration::ZERO), Counts::new());
    group.spawn(never(&counts));
    waits!(list, group.wait());
    begins!(list, group.shutdown(Reason::Requested));
    assert_eq!(group.shutdown(Reason::Requested).await.aborted().len(), 1, "another call goes on");
    let other = Group::new();
    begins!(list, other.spawn_named("never", never(&counts)).cancel());
    begins!(list, other.spawn_any(never(&counts)).cancel());
    other.wait().await;
    assert_eq!(other.shutdown(Reason::Requested).await.cancelled(), 4);
}

async fn shields(list: &mut List) {
    let counts = Counts::new();
    begins!(list, shield(std::time::Duration::ZERO, never(&counts)));
    until(|| counts.drops() == 2).await;
}

async fn handles(list: &mut List) {
    let (send, receive) = oneshot();
    let mut task = spawn(receive);
    waits!(list, &mut task, kept);
    send.send(7);
    assert_eq!(task.await.unwrap(), Some(7), "nobody has taken the output away");

    let mut tasks: Vec<_> = (0..3).map(|_| spawn(std::future::pending::<()>())).collect();
    let detached: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
    waits!(list, tasks.pop().unwrap().shared(), kept);
    detached.iter().for_each(AbortHandle::abort);
    until(|| detached.iter().all(AbortHandle::is_finished)).await;

    let (counts, here) = (Counts::new(), Handle::current());
    begins!(list, Builder::new().spawn_on(never(&counts), &here).cancel());
    until(|| counts.drops() == 2).await;

    let (quit, wait) = mpsc::channel::<()>();
    let mut job = spawn_blocking(move || wait.recv());
    waits!(list, &mut job, kept);
    drop(quit);
    assert!(job.await.unwrap().is_err());

    for local in [false, true] {
        begins!(list, {
            let task = if local { spawn_local(never(&counts)) } else { spawn(never(&counts)) };
            task.cancel()
        });
    }
    until(|| counts.drops() == 6).await;
}

async fn sets(list: &mut List) {
    let (send, receive) = oneshot();
    let mut set = JoinSet::new();
    set.spawn(receive);
    waits!(list, set.join_next(), kept);
    waits!(list, set.join_next_with_id(), kept);
    send.send(7);
    assert_eq!(set.join_next().await.unwrap().unwrap(), Some(7), "the set has kept it");

    let (quit, wait) = mpsc::channel::<()>();
    let (begins, has_begun) = mpsc::channel();
    set.spawn_blocking(move || {
        begins.send(()).unwrap();
        wait.recv().ok();
        Some(8)
    });
    has_begun.recv().unwrap();
    waits!(list, set.shutdown(), kept);
    drop(quit);
    assert_eq!(set.join_next().await.unwrap().unwrap(), Some(8), "who had begun is still in the set");

    let counts = Counts::new();
    let alive = Handle::current().metrics().num_alive_tasks();
    waits!(list, {
        let mut set = JoinSet::new();
        set.spawn(never(&counts));
        set.spawn(async {});
        set.join_all()
    });
    until(|| counts.drops() == 3).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), alive);
}

async fn scopes(list: &mut List) {
    let (end, ended) = mini::sync::oneshot::channel();
    mini::local_scope!(|s| {
        let mut handle = s.spawn(ended);
        waits!(list, &mut handle, kept);
        end.send(9).unwrap();
        assert_eq!(handle.await, Ok(9), "the child went on");
    })
    .await;
    waits!(
        list,
        mini::scope!(|s| {
            s.spawn(pending::<()>());
            pending::<()>().await
        })
    );
}

/// What `join!` and `race!` expand to.
async fn macros(list: &mut List) {
    use mini::structure::{Empty, awaited, biased, branch, fair, infallible, join, maybe, racer};
    waits!(
        list,
        join(maybe(
            awaited(Empty, pin!(branch(infallible(pending::<()>())))),
            pin!(branch(infallible(pending::<()>())))
        ))
    );
    waits!(list, fair(racer(Empty, pin!(Some(pending::<()>())), |output| (true, output))));
    waits!(list, biased(racer(Empty, pin!(Some(pending::<()>())), |output| (true, output))));
    waits!(list, infallible(pending::<()>()));
}
