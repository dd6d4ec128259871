//! Drawn trees of groups, tokens, tasks and shields that come, go and end in any order: each is over within its grace,
//! every task is accounted for, and nothing is left.
//!
//! With a paused clock the grace is exact. On several workers, by the real clock, only the accounts are compared.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use mini::task::{AbortHandle, CancelToken, Group, Reason, Report, shield, yield_now};
use mini::time::{Duration, Instant, pause, sleep};
use mini_tests::{Counts, LIMIT, Token, multi_thread, until, within};

/// Numbers that look random: xorshift.
struct Draw(u64);

impl Draw {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Less than `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    fn millis(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }
}

struct Tree {
    draw: Draw,
    top: Group,
    /// Never dropped before the end: the last handle of a living group would say so.
    groups: Vec<Group>,
    tokens: Vec<CancelToken>,
    tasks: Vec<AbortHandle>,
    /// How many tasks were spawned, apart from those that are shielded.
    spawned: Arc<AtomicUsize>,
    shielded: Arc<AtomicUsize>,
    counts: Arc<Counts>,
    /// The longest time of anything, in milliseconds.
    span: u64,
}

impl Tree {
    fn new(seed: u64, span: u64) -> Self {
        let mut draw = Draw::new(seed);
        let top = Group::new().name("top").grace(draw.millis(span));
        let (groups, tokens) = (vec![top.clone()], vec![top.token()]);
        let (spawned, shielded, counts) = (Arc::default(), Arc::default(), Counts::new());
        Self { draw, top, groups, tokens, tasks: Vec::new(), spawned, shielded, counts, span }
    }

    fn spawn(&mut self) {
        let group = self.draw.of(&self.groups).clone();
        let token = self.draw.of(&self.tokens).clone();
        let (time, grace) = (self.draw.millis(self.span), self.draw.millis(self.span));
        let (gone, spawned) = (Token::new(&self.counts), self.spawned.clone());
        let shields = self.shielded.clone();
        let shielded = Token::new(&self.counts);
        spawned.fetch_add(1, SeqCst);
        let task = match self.draw.below(8) {
            0 => group.spawn(async move {
                let _gone = (gone, shielded);
                pending().await
            }),
            1 => group.spawn(async move {
                let _gone = (gone, shielded);
                sleep(time).await;
            }),
            2 => group.spawn(async move {
                let _gone = (gone, shielded);
                token.cancelled().await;
                sleep(time).await;
            }),
            3 => group.spawn(async move {
                let _gone = (gone, shielded);
                let _ = token.run(sleep(time)).await;
            }),
            4 | 5 => group.spawn(async move {
                let _gone = gone;
                shields.fetch_add(1, SeqCst);
                let inside = async move {
                    let _gone = shielded;
                    sleep(time).await;
                };
                let _ = token.run(shield(grace, inside)).await;
            }),
            6 => {
                let (inside, token) = (group.clone(), token.clone());
                group.spawn(async move {
                    let _gone = gone;
                    token.cancelled().await;
                    spawned.fetch_add(1, SeqCst);
                    drop(inside.spawn(async move {
                        let _gone = shielded;
                        sleep(time).await;
                    }));
                })
            }
            _ => {
                let inside = group.clone();
                group.spawn(async move {
                    let _gone = (gone, shielded);
                    token.cancelled().await;
                    inside.shutdown(Reason::SiblingFailed).await;
                })
            }
        };
        self.tasks.push(task.abort_handle());
    }

    async fn step(&mut self) {
        match self.draw.below(20) {
            0..=9 => self.spawn(),
            10 | 11 => {
                let child = self.draw.of(&self.groups).child().grace(self.draw.millis(self.span));
                self.tokens.push(child.token());
                self.groups.push(child);
            }
            12 => {
                let child = self.draw.of(&self.tokens).child();
                self.tokens.push(child);
            }
            13 => {
                let at = self.draw.below(self.tokens.len() as u64) as usize;
                if at > 0 {
                    self.tokens[at].cancel(Reason::Requested);
                }
            }
            14 if !self.tasks.is_empty() => self.draw.of(&self.tasks).abort(),
            15 if self.groups.len() > 1 => {
                // One that nobody awaits to its end: somebody else has to go on with it.
                let ending = self.draw.of(&self.groups[1..]).shutdown(Reason::Deadline);
                let _ = mini::time::timeout(self.draw.millis(self.span), ending).await;
            }
            16..=18 => sleep(self.draw.millis(self.span / 4 + 1)).await,
            _ => yield_now().await,
        }
    }

    /// The report accounts for every task, but with `may_miss` not for each that is shielded: where the group has shut
    /// down, such a task belongs to the program.
    fn check(&self, report: &Report, may_miss: bool) {
        assert!(report.running().is_empty() && self.top.is_empty(), "{report}");
        assert!(self.groups.iter().all(Group::is_empty) && self.tokens.iter().all(CancelToken::is_cancelled));
        let ended = report.finished() + report.failures() + report.cancelled() + report.aborted().len() as u64;
        let [spawned, shielded] = [&self.spawned, &self.shielded].map(|count| count.load(SeqCst) as u64);
        let least = if may_miss { spawned } else { spawned + shielded };
        assert!((least..=spawned + shielded).contains(&(ended + report.refused())), "{least} + {shielded}: {report}");
    }
}

#[test]
fn drawn_trees_end_within_their_grace() {
    within(LIMIT, || {
        mini::block_on(async {
            pause();
            for seed in 0..1000 {
                let mut tree = Tree::new(seed, 1000);
                for _ in 0..40 {
                    tree.step().await;
                }
                let start = Instant::now();
                let grace = Duration::from_millis(Draw::new(seed).below(1000)); // the first that was drawn
                let report = tree.top.shutdown(Reason::Shutdown).await;
                let took = start.elapsed();
                assert!(took <= grace + Duration::from_millis(1), "tree {seed} took {took:?} of {grace:?}: {report}");
                tree.check(&report, false);
                let counts = tree.counts.clone();
                drop(tree);
                assert_eq!(Arc::strong_count(&counts), 1, "tree {seed} has left something behind");
            }
        });
    });
}

#[test]
fn drawn_trees_on_several_workers_account_for_every_task() {
    within(LIMIT, || {
        let runtime = multi_thread(3).build().unwrap();
        for seed in 0..100 {
            runtime.block_on(async {
                let mut tree = Tree::new(seed, 4);
                for _ in 0..40 {
                    tree.step().await;
                }
                let report = tree.top.shutdown(Reason::Shutdown).await;
                tree.check(&report, true);
                let counts = tree.counts.clone();
                drop(tree);
                until(|| Arc::strong_count(&counts) == 1).await;
            });
        }
    });
}
