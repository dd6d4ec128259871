//! Bugs that need something to come late, or two things to come at nearly the same time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use mini::sim::{buggify, rand};
use mini::sync::{mpsc, oneshot};
use mini::task::spawn_local;
use mini::time::{Duration, Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// Each plan says where a name leads. An enactor looks whether its plan is newer than the one in force, applies it to
/// many names, which may take long, and deletes plans that are much older than its own.
///
/// Published: the disruption of Amazon DynamoDB in us-east-1 in October 2025. A delayed enactor applied its old plan
/// over a newer one, as its check was stale by then, and the plan was deleted as too old by another enactor
/// (<https://aws.amazon.com/message/101925/>).
pub(super) async fn late_enactor(is_mended: bool) {
    #[derive(Default)]
    struct Names {
        plans: RefCell<BTreeSet<u64>>,
        in_force: Cell<u64>,
    }
    impl Names {
        async fn enact(&self, plan: u64, is_mended: bool) {
            if self.in_force.get() >= plan {
                return;
            }
            for _ in 0..5 {
                sleep(if buggify!(0.05) { 32 * SECOND } else { SECOND / 10 }).await; // names that are busy
            }
            if is_mended && self.in_force.get() >= plan {
                return;
            }
            self.in_force.set(plan);
            self.plans.borrow_mut().retain(|&other| other + 3 > plan); // clean-up
        }
    }
    let names = Rc::new(Names::default());
    names.plans.borrow_mut().insert(0);
    let mut enactors = Vec::new();
    for plan in 1..=20 {
        names.plans.borrow_mut().insert(plan);
        let enactor = names.clone();
        enactors.push(spawn_local(async move { enactor.enact(plan, is_mended).await }));
        for _ in 0..5 {
            sleep(SECOND).await;
            assert!(names.plans.borrow().contains(&names.in_force.get()), "the name leads nowhere");
        }
    }
    for enactor in enactors {
        enactor.await.unwrap();
    }
    assert!(names.plans.borrow().contains(&names.in_force.get()), "the name leads nowhere");
}

/// Calls over one connection, each with a number of its own, which is free again after the answer or a timeout: an
/// answer that comes later is taken for that of the next call.
pub(super) async fn late_answer(is_mended: bool) {
    /// The number of a call, and who wants its answer.
    type Waiting = (u64, oneshot::Sender<u64>);
    #[derive(Default)]
    struct Calls {
        waiting: RefCell<[Option<Waiting>; 2]>,
        made: Cell<u64>,
    }
    let calls = Rc::new(Calls::default());
    let (send, mut requests) = mpsc::channel::<(usize, u64, u64)>(8);
    let server = spawn_local({
        let calls = calls.clone();
        async move {
            while let Some((slot, call, question)) = requests.recv().await {
                let calls = calls.clone();
                drop(spawn_local(async move {
                    sleep(Duration::from_micros(rand() % 10_200)).await;
                    let waiting = calls.waiting.borrow_mut()[slot].take_if(|(other, _)| *other == call || !is_mended);
                    if let Some((_, answer)) = waiting {
                        let _ = answer.send(question * question);
                    }
                }));
            }
        }
    });
    let clients = [0, 1].map(|slot| {
        let (calls, send) = (calls.clone(), send.clone());
        spawn_local(async move {
            for question in 0..10 {
                let (sender, answer) = oneshot::channel();
                let call = calls.made.replace(calls.made.get() + 1);
                calls.waiting.borrow_mut()[slot] = Some((call, sender));
                send.send((slot, call, question)).await.unwrap();
                if let Ok(answer) = timeout(Duration::from_millis(10), answer).await {
                    assert_eq!(answer.unwrap(), question * question, "the answer to another question");
                }
            }
        })
    });
    drop(send);
    for client in clients {
        client.await.unwrap();
    }
    server.await.unwrap();
}

/// A session ends after thirty seconds without use. Its end is written down first, which takes some time, and then
/// nobody looks whether it was used meanwhile.
pub(super) async fn stale_expiry(is_mended: bool) {
    const IDLE: Duration = Duration::from_secs(30);
    struct Session {
        used: Cell<Instant>,
        is_open: Cell<bool>,
    }
    impl Session {
        fn touch(&self) -> bool {
            self.used.set(Instant::now());
            self.is_open.get()
        }
        async fn expire(self: Rc<Self>, is_mended: bool) {
            while self.is_open.get() {
                sleep(IDLE.saturating_sub(self.used.get().elapsed())).await;
                if self.used.get().elapsed() >= IDLE {
                    sleep(Duration::from_millis(50)).await; // writes it down
                    if !is_mended || self.used.get().elapsed() >= IDLE {
                        self.is_open.set(false);
                    }
                }
            }
        }
    }
    let mut session: Option<Rc<Session>> = None;
    for _ in 0..20 {
        sleep(Duration::from_millis(rand() % 60_000)).await;
        if !session.as_ref().is_some_and(|session| session.touch()) {
            let new = Rc::new(Session { used: Cell::new(Instant::now()), is_open: Cell::new(true) });
            drop(spawn_local(new.clone().expire(is_mended)));
            session = Some(new);
        }
        sleep(SECOND).await;
        assert!(session.as_ref().is_some_and(|session| session.touch()), "a session in use has ended");
    }
}
