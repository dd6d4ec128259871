//! `join!`, `try_join!` and `race!`: who is polled when, what is dropped when, and where arms act.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn, ready};
use std::task::Poll;

use mini::block_on as run;
use mini::sync::mpsc;
use mini::task::yield_now;
use mini::{join, race, try_join};
use mini_tests::caught;

mod many;

/// Writes its name when it is dropped.
struct Named<'a>(&'static str, &'a RefCell<Vec<&'static str>>);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

/// Holds `named` for ever.
async fn hold(named: Named<'_>) {
    pending::<()>().await;
    drop(named);
}

/// Ready after that many turns.
async fn after<T>(turns: usize, value: T) -> T {
    for _ in 0..turns {
        yield_now().await;
    }
    value
}

#[test]
fn a_join_gives_all_outputs_in_the_order_of_its_branches() {
    run(async {
        assert_eq!(join!(after(2, 1)), (1,));
        assert_eq!(join!(after(3, 'a'), after(0, "b"), after(1, 3),), ('a', "b", 3));
        let many = join!(
            ready(0),
            ready(1),
            ready(2),
            ready(3),
            ready(4),
            ready(5),
            ready(6),
            ready(7),
            ready(8),
            ready(9),
            ready(10)
        );
        assert_eq!(many, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    });
}

#[test]
fn a_race_of_a_future_with_an_equals_sign_is_one_of_futures() {
    async fn size<T: ?Sized>() -> usize {
        size_of::<&T>()
    }
    run(async {
        let expected = race!(pending(), size::<dyn Iterator<Item = u8>>());
        assert_eq!(race!((size::<dyn Iterator<Item = u8>>()), pending()), expected);
    });
}

#[test]
fn a_join_takes_functions_of_the_name_of_its_keyword() {
    async fn maybe(value: u32) -> u32 {
        value
    }
    mod maybe {
        pub(super) async fn one() -> u32 {
            1
        }
    }
    run(async {
        assert_eq!(join!(maybe(1), maybe::one(), maybe maybe(2)), (1, 1, Some(2)));
        let maybe = maybe(3);
        assert_eq!(join!(ready(()), maybe), ((), 3));
    });
}

#[test]
fn branches_run_concurrently_and_borrow() {
    run(async {
        let (sender, mut receiver) = mpsc::channel(1);
        let text = String::from("text");
        let (length, received) = join!(
            async {
                for n in 0..10 {
                    sender.send(n).await.unwrap();
                }
                drop(sender);
                text.len()
            },
            async {
                let mut sum = 0;
                while let Some(n) = receiver.recv().await {
                    sum += n;
                }
                sum
            }
        );
        assert_eq!((length, received), (4, 45));
    });
}

#[test]
fn a_future_that_is_done_is_dropped_and_not_polled_again() {
    run(async {
        let gone = RefCell::new(Vec::new());
        join!(async { drop(Named("first", &gone)) }, async {
            let _held = Named("second", &gone);
            after(2, ()).await;
        });
        assert_eq!(gone.into_inner(), ["first", "second"]);
    });
}

#[test]
fn maybe_is_dropped_when_the_others_are_done() {
    run(async {
        let gone = RefCell::new(Vec::new());
        let (never, value, quick) = join!(maybe hold(Named("maybe", &gone)), after(2, 7), maybe ready(8));
        assert_eq!((never, value, quick), (None, 7, Some(8)));
        assert_eq!(gone.into_inner(), ["maybe"]);
    });
}

#[test]
fn the_first_error_drops_the_others_before_it_is_given() {
    run(async {
        let gone = RefCell::new(Vec::new());
        let failed = try_join!(
            async {
                hold(Named("other", &gone)).await;
                Ok::<u32, &str>(1)
            },
            after(2, Err::<u32, _>("failed"))
        );
        assert_eq!((failed, gone.into_inner()), (Err("failed"), vec!["other"]));
        assert_eq!(try_join!(after(1, Ok::<_, ()>(1)), ready(Ok("b"))), Ok((1, "b")));
    });
}

#[test]
fn each_branch_of_a_join_comes_first_in_turn() {
    run(async {
        let firsts = Cell::new([0; 2]);
        let busy = Cell::new(0);
        let branch = |own: usize| {
            let (firsts, busy) = (&firsts, &busy);
            let mut turns = 0;
            poll_fn(move |cx| {
                if busy.replace(1 - busy.get()) == 0 {
                    let mut counts = firsts.get();
                    counts[own] += 1;
                    firsts.set(counts);
                }
                turns += 1;
                cx.waker().wake_by_ref();
                if turns == 100 { Poll::Ready(()) } else { Poll::Pending }
            })
        };
        join!(branch(0), branch(1));
        assert_eq!(firsts.get(), [50, 50]);
    });
}

#[test]
fn a_race_gives_the_first_output() {
    run(async {
        assert_eq!(race!(after(3, 1), after(1, 2), pending()), 2);
        assert_eq!(race!(ready(7)), 7);
    });
}

#[test]
fn losers_are_gone_when_the_arm_begins() {
    run(async {
        let gone = RefCell::new(Vec::new());
        let seen = race! {
            value = after(2, 7) => (value, gone.borrow().clone()),
            _ = hold(Named("loser", &gone)) => unreachable!(),
        };
        assert_eq!(seen, (7, vec!["loser"]));
    });
}

#[test]
fn arms_act_on_the_function_around() {
    async fn first_even(mut receiver: mpsc::UnboundedReceiver<u32>) -> Result<u32, String> {
        let mut seen = 0;
        let found = loop {
            race! {
                biased;
                Some(n) = receiver.recv() => {
                    seen += 1;
                    if n % 2 == 1 {
                        continue;
                    }
                    yield_now().await;
                    if n == 100 {
                        return Ok(n);
                    }
                    let checked: Result<u32, String> = if n == 50 { Err("fifty".to_owned()) } else { Ok(n) };
                    break checked?;
                }
                else => return Err(format!("none of {seen}")),
            }
        };
        Ok(found)
    }
    run(async {
        for (sent, end) in [
            (vec![1, 3, 4], Ok(4)),
            (vec![1, 100], Ok(100)),
            (vec![50], Err("fifty".to_owned())),
            (vec![1, 3], Err("none of 2".to_owned())),
        ] {
            let (sender, receiver) = mpsc::unbounded_channel();
            sent.into_iter().for_each(|n| sender.send(n).unwrap());
            drop(sender);
            assert_eq!(first_even(receiver).await, end);
        }
    });
}

#[test]
fn patterns_may_bind_in_any_way() {
    run(async {
        let text = race! {
            Some(mut text) = ready(Some(String::from("a"))) => {
                text.push('b');
                text
            }
        };
        assert_eq!(text, "ab");
        let number = race! {
            &1 | &2 = ready(&3) => 0,
            n @ 3..=9 = after(1, 5) => n,
        };
        assert_eq!(number, 5);
    });
}

#[test]
fn an_output_that_does_not_match_puts_its_branch_out() {
    run(async {
        let polls = Cell::new(0);
        let won = race! {
            biased;
            Ok(n) = async { polls.set(polls.get() + 1); Err::<u32, ()>(()) } => n,
            n = after(3, 9) => n,
        };
        assert_eq!((won, polls.get()), (9, 1));
    });
}

#[test]
fn a_branch_whose_condition_fails_makes_no_future() {
    run(async {
        let mut made = false;
        let won = race! {
            _ = { made = true; ready(1) }, if false => 1,
            n = ready(2), if 1 + 1 == 2 => n,
        };
        assert_eq!((won, made), (2, false));
        assert_eq!(race! { _ = ready(1), if false => 1, else => 0 }, 0);
    });
}

/// All of them before the first future, which may borrow what they look at.
#[test]
fn a_condition_may_look_at_what_an_earlier_future_borrows() {
    run(async {
        let (sender, mut receiver) = mini::sync::mpsc::channel(2);
        sender.send(1).await.unwrap();
        let mut batch = Vec::new();
        let came = race! {
            biased;
            came = receiver.recv_many(&mut batch, 10) => came,
            _ = ready(()), if batch.is_empty() => 0,
        };
        assert_eq!((came, batch), (1, vec![1]));
    });
}

#[test]
fn each_condition_may_take_the_same_lock() {
    run(async {
        let lock = std::sync::Mutex::new((true, false));
        let won = race! {
            n = ready(1), if lock.try_lock().unwrap().0 => n,
            n = ready(2), if lock.try_lock().unwrap().1 => n,
            n = ready(3), if lock.try_lock().is_ok() && lock.try_lock().unwrap().1 => n,
        };
        assert_eq!(won, 1);
    });
}

#[test]
fn a_race_that_nobody_can_win_says_so() {
    let panic = caught(|| {
        run(async {
            race! { Some(()) = ready(None) => {} }
        });
    });
    assert!(panic.message.contains("add an `else` arm"), "{}", panic.message);
}

#[test]
fn biased_goes_by_order_and_a_fair_race_by_chance() {
    run(async {
        let (mut ordered, mut drawn) = ([0; 2], [0; 2]);
        for _ in 0..1000 {
            ordered[race! { biased; n = ready(0) => n, n = ready(1) => n }] += 1;
            drawn[race!(ready(0), ready(1))] += 1;
        }
        assert_eq!(ordered, [1000, 0]);
        assert!(drawn.iter().all(|&wins| wins > 300), "{drawn:?}");
    });
}

#[test]
fn a_future_pinned_outside_goes_on_after_it_has_lost() {
    run(async {
        let polls = Cell::new(0);
        let mut long = std::pin::pin!(async {
            for _ in 0..10 {
                polls.set(polls.get() + 1);
                yield_now().await;
            }
            "done"
        });
        let mut rounds = 0;
        let end = loop {
            race! {
                end = &mut long => break end,
                () = after(1, ()) => rounds += 1,
            }
        };
        assert_eq!((end, polls.get()), ("done", 10));
        assert!(rounds > 0);
    });
}

#[test]
fn the_futures_of_the_macros_are_send() {
    fn is_send<F: Future + Send>(future: F) -> F {
        future
    }
    run(is_send(async {
        join!(after(1, ()), maybe after(1, ()));
        let _ = try_join!(after(1, Ok::<_, ()>(())));
        race! { () = after(1, ()) => {}, Some(_) = after(2, Some(String::new())) => {} }
    }));
}
