//! Very many groups, and tasks.

use super::*;

#[test]
fn a_group_of_a_hundred_thousand_levels_ends_and_is_dropped_without_recursion() {
    let body = || {
        mini::block_on(async {
            let top = Group::new().grace(Duration::ZERO);
            let mut last = top.clone();
            for _ in 0..100_000 {
                last = last.child();
            }
            last.spawn(pending::<()>());
            assert_eq!(top.shutdown(Reason::Requested).await.aborted().len(), 1);
            drop(top);
            drop(last);
        });
    };
    thread::Builder::new().stack_size(256 << 10).spawn(body).unwrap().join().unwrap();
}

#[test]
fn tasks_that_come_and_go_while_their_group_ends_are_all_accounted_for() {
    within(LIMIT, || {
        let runtime = multi_thread(4).build().unwrap();
        for round in 0..100 {
            let (group, began) = (Group::new().grace(Duration::from_millis(round % 3)), AtomicUsize::new(0));
            let handle = runtime.handle().clone();
            let children: Vec<_> = (0..3).map(|_| group.child()).collect(); // kept, or their last handles end them
            thread::scope(|scope| {
                for (spawner, group) in children.iter().enumerate() {
                    let (began, handle) = (&began, handle.clone());
                    scope.spawn(move || {
                        let _inside = handle.enter();
                        for number in 0..200 {
                            let task = match (number + spawner) % 3 {
                                0 => group.spawn(async {}),
                                1 => group.spawn(obedient(group, Duration::ZERO)),
                                _ => group.spawn(pending::<()>()),
                            };
                            began.fetch_add(1, SeqCst);
                            drop(task);
                        }
                    });
                }
                runtime.block_on(async {
                    until(|| began.load(SeqCst) > 50).await;
                    let report = group.shutdown(Reason::Requested).await;
                    assert!(report.running().is_empty(), "{report}");
                });
            });
            let report = runtime.block_on(group.shutdown(Reason::Requested));
            let all = report.finished() + report.aborted().len() as u64 + report.refused();
            assert_eq!((all, report.cancelled(), group.len()), (600, 0, 0), "{report}");
        }
    });
}

#[test]
fn the_first_refusal_of_a_group_is_told_also_if_a_subgroup_has_refused() {
    let name = "many::the_first_refusal_of_a_group_is_told_also_if_a_subgroup_has_refused";
    let child = in_child(name, || {
        mini::block_on(async {
            let top = Group::new().name("top");
            let below = top.child().name("below");
            top.shutdown(Reason::Requested).await;
            assert!(below.spawn(async {}).await.unwrap_err().is_cancelled());
            drop(below); // what it has counted is the top's from here on
            drop(top.spawn(async {}));
            drop(top.spawn(async {}));
            assert_eq!(top.shutdown(Reason::Requested).await.refused(), 3);
        });
    });
    let Some(stderr) = child else { return };
    let said = |name| stderr.lines().filter(|line| line.starts_with(&format!("mini: the group \"{name}\""))).count();
    assert_eq!((said("below"), said("top")), (1, 1), "{stderr}");
}
