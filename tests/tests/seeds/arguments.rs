//! What a simulation is asked for that makes no sense: it says so, and where it was asked.

use std::panic::catch_unwind;
use std::time::Duration;

use mini::signal::unix::SignalKind;
use mini::sim::{Seeds, current};

const SECOND: Duration = Duration::from_secs(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn arguments_that_make_no_sense_are_refused_at_the_line_that_gives_them() {
    /// What is said of a call, and the line it is in.
    macro_rules! refused {
        ($sim:ident, $call:expr) => {{
            let test = Seeds::new("sim_arguments", "refused", 1);
            let run = || async {
                let $sim = current();
                $sim.host("up", || async {});
                $sim.client("once", async {}).await.unwrap();
                let _ = ($call,);
            };
            (*catch_unwind(|| test.run(run)).unwrap_err().downcast::<String>().unwrap(), line!())
        }};
    }
    let of_probabilities = [
        refused!(sim, sim.loss(2.0)),
        refused!(sim, sim.loss(f64::NAN)),
        refused!(sim, sim.duplication(-1.0)),
        refused!(sim, sim.link("test", "up").loss(1.1)),
        refused!(sim, sim.link("test", "up").duplication(f64::INFINITY)),
        refused!(sim, sim.late_timers(-0.1, SECOND)),
        refused!(sim, sim.cancel_at_random(7.0, async {})),
        refused!(sim, mini::sim::buggify!(1.5)),
        refused!(sim, sim.disk().errors(2.0)),
    ];
    let others = [
        (refused!(sim, sim.latency(ms(5)..ms(1))), "5ms..1ms is not a range of latencies: it ends before it begins"),
        (refused!(sim, sim.link("test", "up").latency(ms(5)..ms(1))), "5ms..1ms is not a range of latencies"),
        (refused!(sim, sim.skew("up", -1_000_000)), "faster by -1000000 parts of a million would stop"),
        (refused!(sim, sim.skew("up", -1_000_001)), "faster by -1000001 parts of a million would go backwards"),
        (refused!(sim, sim.link("up", "down")), "no host named `down`"),
        (refused!(sim, sim.partition("up", ["test", "down"])), "no host named `down`"),
        (refused!(sim, sim.hold("down", "up")), "no host named `down`"),
        (refused!(sim, sim.crash(["up", "down"])), "no host named `down`"),
        (refused!(sim, sim.resume("down")), "no host named `down`"),
        (refused!(sim, sim.disk_of("down")), "no host named `down`"),
        (refused!(sim, sim.lookup("down")), "no host named `down`"),
        (refused!(sim, sim.signal("down", SignalKind::hangup())), "no host named `down`"),
        (refused!(sim, sim.pause("test")), "the host of the test cannot be paused"),
        (refused!(sim, (sim.crash("once"), sim.restart("once"))), "a client runs once, and cannot be restarted"),
        (refused!(sim, sim.host("up", || async {})), "has a host named `up`"),
        (refused!(sim, sim.host("", || async {})), "a host cannot be named ``"),
        (refused!(sim, sim.client("127.0.0.1", async {})), "a host cannot be named `127.0.0.1`"),
        (refused!(sim, sim.host("up:80", || async {})), "a host cannot be named `up:80`"),
    ];
    let of_probabilities = of_probabilities.map(|told| (told, " from 0 to 1"));
    for ((text, line), expected) in of_probabilities.into_iter().chain(others) {
        let is_placed = text.contains(&format!("\n  at {}:{line}\n", file!()));
        assert!(is_placed && text.contains(expected), "line {line}: {text}");
    }
}
