//! The examples about event loops, run as a user runs them: they end by themselves, and say what they should.
//!
//! They assert their own claims; what is looked at here is that they get that far, and what they do with bad arguments.

use std::process::Command;
use std::thread;

#[path = "support.rs"]
mod support;

use support::{ended, fails, failure, lines, numbers, program, succeeds, until};

#[test]
fn cores_serves_every_message_on_one_of_its_cores() {
    let out = succeeds("cores", &["--cores", "3", "--connections", "30", "--messages", "5"]);
    let served: Vec<Vec<u64>> = lines(&out, "core ").iter().map(|line| numbers(line)).collect();
    assert_eq!(served.len(), 3, "{out}");
    assert_eq!(served.iter().map(|core| core[1]).sum::<u64>(), 30, "{out}");
    assert_eq!(served.iter().map(|core| core[2]).sum::<u64>(), 150, "{out}");
}

/// Above what the server can do, newcomers give up, and the connected do not notice: unlike at a server that accepts at
/// once. On a busy machine it may take more than one round.
#[test]
fn priority_keeps_the_newcomers_from_the_connected() {
    until("priority", &["--rounds", "1"], |out| {
        let figure = |server, word| {
            let [line] = lines(out, server)[..] else { panic!("{out}") };
            line.split_once(word).map_or(0.0, |(_, rest)| leading(rest))
        };
        let (patient, greedy) = ("150 %, accept when idle", "150 %, accept at once");
        figure(patient, "served,") > 0.0
            && figure(patient, "p50") < 2.0 * figure("no newcomers", "p50")
            && 4.0 * figure(patient, "p99") < figure(greedy, "p99")
    });
}

/// The number at the beginning of a text.
fn leading(text: &str) -> f64 {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().unwrap_or(0.0)
}

#[test]
fn workers_gets_jobs_done_everywhere() {
    let out = succeeds("workers", &["--seconds", "1", "--jobs", "2"]);
    assert!(lines(&out, "no jobs")[0].ends_with(" 0 jobs"), "{out}");
    for place in ["on threads of low priority", "on ordinary threads", "in the loop"] {
        let [line] = lines(&out, place)[..] else { panic!("{out}") };
        assert!(numbers(line).last() > Some(&0), "{out}");
    }
    // On a busy machine the idle class may get none done.
    assert_eq!(lines(&out, "on threads of the idle class").len(), 1, "{out}");
}

/// The loop is on time beside jobs that give way, and not beside those that do not. Other programs make it late in both
/// cases, so it may take more than one round to see.
#[test]
fn workers_of_low_priority_give_way_to_the_loop() {
    until("workers", &["--seconds", "1"], |out| {
        let p99 = |place| {
            let [line] = lines(out, place)[..] else { panic!("{out}") };
            numbers(line)[4..6].iter().fold(0, |ms, part| ms * 1000 + part) // p50 1.442 ms p99 1.606 ms
        };
        let ordinary = p99("on ordinary threads");
        2 * p99("on threads of low priority") < ordinary && 2 * p99("on threads of the idle class") < ordinary
    });
}

#[test]
fn embed_sleeps_when_there_is_nothing_to_do() {
    let out = succeeds("embed", &["--messages", "50"]);
    assert!(out.contains("50 messages echoed, 5 ticks, 5 keys typed"), "{out}");
    assert!(out.contains("in 1 call of poll(2)"), "{out}");
}

#[test]
fn queue_has_each_job_done_once() {
    let out = succeeds("queue", &["--jobs", "200", "--consumers", "3"]);
    for queue in ["eventfd", "SOCK_DGRAM", "SOCK_SEQPACKET"] {
        let [line] = lines(&out, queue)[..] else { panic!("{out}") };
        let shares = numbers(line);
        assert_eq!((shares.len(), shares.iter().sum()), (3, 200), "{out}");
    }
    for args in [["--jobs", "70000"], ["--consumers", "101"]] {
        assert!(fails("queue", &args).contains("at most 65535 jobs and 100 consumers"));
    }
}

#[test]
fn c10k_keeps_its_idle_connections() {
    let out = succeeds("c10k", &["--connections", "2000", "--rounds", "5"]);
    assert_eq!(lines(&out, "beside ").len(), 3, "{out}");
    assert!(out.ends_with("all 2000 still answer\n"), "{out}");
    assert!(fails("c10k", &["--connections", "10"]).contains("from 2000 to 1000000"));
    assert!(fails("c10k", &["load", "nowhere"]).contains("what is nowhere?"));
}

#[test]
fn c10k_says_how_many_descriptors_it_may_not_have() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 500 && exec \"$0\""]).arg(program("c10k"));
    let error = failure(&ended(&mut command));
    assert!(error.contains("10064 open descriptors are needed, and the limit is 500"), "{error}");
}

#[test]
fn bad_arguments_are_named_with_the_usage() {
    for name in ["c10k", "cores", "embed", "priority", "queue", "workers"] {
        let error = fails(name, &["one", "two"]);
        assert!(error.starts_with(&format!("{name}: what is one two?\nusage: {name} ")), "{error}");
    }
    for (name, option) in [("cores", "--cores"), ("embed", "--messages"), ("queue", "--jobs"), ("workers", "--jobs")] {
        assert!(fails(name, &[option, "many"]).contains(&format!("{option} needs a number from 1 on, not \"many\"")));
        assert!(fails(name, &[option]).contains(&format!("{option} needs a value")));
    }
}

#[test]
fn only_threads_in_one_epoll_without_one_shot_answer_in_the_wrong_order() {
    until("threads_of_a_loop", &["--milliseconds", "100"], |out| {
        let mut overtaken = 0;
        for way in ["one loop", "a mutex", "one epoll ", "one epoll, one-shot", "a loop per thread", "mini "] {
            let [line] = lines(out, way)[..] else { panic!("{out}") };
            let [rate, wrong, rate_with_work, wrong_with_work] = numbers(line)[..] else { panic!("{out}") };
            assert!(rate > 0 && rate_with_work > 0, "{out}");
            match way {
                "one epoll " => overtaken = wrong + wrong_with_work,
                _ => assert_eq!((wrong, wrong_with_work), (0, 0), "{out}"),
            }
        }
        // It takes two threads that run at the same time, so not each round has it.
        overtaken > 0 || thread::available_parallelism().map_or(1, usize::from) == 1
    });
}

#[test]
fn descriptors_shows_each_of_them() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let out = succeeds("descriptors", &[]);
    for shown in [
        "completion: 10 threads",
        "lock: 10 tasks",
        "deadlock: task ",
        "timerfd: ",
        "signals: SIGUSR1",
        "pipe: ",
        "a file: ",
    ] {
        assert_eq!(lines(&out, shown).len(), 1, "{out}");
    }
}

/// On a busy machine each request takes longer, so it may take more than one round.
#[test]
fn levels_lets_the_lower_ones_wait_and_give_up() {
    until("levels", &["--milliseconds", "500"], |out| {
        let [control, data, accept, idle] = ["control", "data", "new clients", "idle"].map(|level| {
            let numbers = numbers(lines(out, level)[0]);
            let (served, given_up) = (numbers[0], numbers[1]);
            (served, given_up)
        });
        assert!(control.0 > 0 && idle.1 > 0, "{out}");
        control.1 == 0 && data.1 == 0 && data.0 > accept.0 && accept.1 > 0 && accept.0 >= idle.0
    });
}
