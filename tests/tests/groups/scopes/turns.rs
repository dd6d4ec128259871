//! Who runs when, if children or new ones have always something to do.

use std::cell::Cell;

use mini::block_on as run;
use mini::local_scope;
use mini::sync::{Semaphore, mpsc};
use mini::task::{LocalScope, yield_now};

#[test]
fn children_that_are_always_ready_and_the_body_take_turns() {
    run(async {
        let turns = [const { Cell::new(0) }; 3];
        let most = Cell::new(0);
        let spin = async |own: usize| {
            for _ in 0..100 {
                turns[own].set(turns[own].get() + 1);
                let all = turns.each_ref().map(Cell::get);
                most.set(most.get().max(all.iter().max().unwrap() - all.iter().min().unwrap()));
                yield_now().await;
            }
        };
        local_scope!(|s| {
            s.spawn(spin(0));
            s.spawn(spin(1));
            spin(2).await;
        })
        .await;
        assert!(most.get() <= 2, "one was {} turns ahead", most.get());
    });
}

#[test]
fn a_child_with_an_endless_supply_leaves_the_others_their_turn() {
    run(async {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut others = 0;
        local_scope!(|s| {
            s.spawn(async {
                let again = sender.clone();
                sender.send(()).unwrap();
                while receiver.recv().await.is_some() {
                    if again.send(()).is_err() {
                        return;
                    }
                    if mini::task::coop::has_budget_remaining() {
                        continue;
                    }
                    yield_now().await;
                    break;
                }
            });
            s.spawn(async { others += 1 });
        })
        .await;
        assert_eq!(others, 1);
    });
}

/// More children than one poll has a budget for, all of them always ready: a new one is polled all the same, and so are
/// they beside children that spawn others.
#[test]
fn a_crowd_that_is_always_ready_lets_new_children_begin_and_they_let_it_go_on() {
    const CROWD: usize = 300;
    run(async {
        let (done, turns) = (Cell::new(false), Cell::new(0));
        local_scope!(|s| {
            for _ in 0..CROWD {
                s.spawn(async {
                    while !done.get() {
                        turns.set(turns.get() + 1);
                        yield_now().await;
                    }
                });
            }
            yield_now().await;
            s.spawn(async { done.set(true) });
        })
        .await;
        assert!((CROWD..20 * CROWD).contains(&turns.get()), "{} turns", turns.get());

        let (turns, born) = (Cell::new(0), Cell::new(0));
        local_scope!(|s| {
            for _ in 0..CROWD {
                beget(s.clone(), &born, &turns);
            }
            while turns.get() < 100 {
                turns.set(turns.get() + 1);
                yield_now().await;
            }
        })
        .await;
        assert!((100..100_000).contains(&born.get()), "{} children", born.get());
    });
}

/// A child that spends the whole budget, and one that yields: all that was woken is just polled in each pass.
#[test]
fn woken_children_that_spend_just_the_budget_let_new_ones_begin() {
    for crowd in [1, 2, 10] {
        run(async {
            let (began, turns) = (Cell::new(false), Cell::new(0));
            let goes_on = || !began.get() && turns.get() < 10_000;
            local_scope!(|s| {
                for _ in 0..crowd {
                    s.spawn(async {
                        while goes_on() {
                            spend(1).await;
                        }
                    });
                }
                s.spawn(async {
                    while goes_on() {
                        turns.set(turns.get() + 1);
                        yield_now().await;
                    }
                });
                for _ in 0..20 {
                    yield_now().await;
                }
                turns.set(0);
                s.spawn(async { began.set(true) });
            })
            .await;
            assert!(turns.get() < 100, "{crowd} children: it began after {} turns", turns.get());
        });
    }
}

/// New children that spend the budget, and of which each pass has more, beside those that are always ready.
#[test]
fn new_children_that_spend_the_budget_let_woken_ones_go_on() {
    run(async {
        let (made, is_over) = (Cell::new(0), Cell::new(false));
        local_scope!(|s| {
            for _ in 0..150 {
                s.spawn(async {
                    while !is_over.get() {
                        yield_now().await;
                    }
                });
            }
            yield_now().await;
            supply(s.clone(), &made, &is_over);
            for _ in 0..20 {
                yield_now().await;
            }
            is_over.set(true);
        })
        .await;
        assert!(made.get() < 1000, "{} children while the body had twenty turns", made.get());
    });
}

fn supply<'env>(scope: LocalScope<'env>, made: &'env Cell<u32>, is_over: &'env Cell<bool>) {
    if is_over.get() || made.get() == 10_000 {
        return;
    }
    made.set(made.get() + 1);
    scope.spawn(spend(200));
    let next = scope.clone();
    scope.spawn(async move { supply(next, made, is_over) });
}

/// So many operations of the budget.
async fn spend(operations: u32) {
    let free = Semaphore::new(1);
    for _ in 0..operations {
        drop(free.acquire().await);
    }
}

/// A child that has another one, until there were enough turns of the body.
fn beget<'env>(scope: LocalScope<'env>, born: &'env Cell<u32>, turns: &'env Cell<u32>) {
    let next = scope.clone();
    scope.spawn(async move {
        born.set(born.get() + 1);
        if turns.get() < 100 {
            beget(next, born, turns);
        }
    });
}
