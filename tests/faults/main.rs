//! Work to be done while system calls fail: `tests/faults.sh` runs it under strace(1), which makes them fail.
//!
//! ```text
//! faults SCENARIO WORKERS [ERROR...]
//! ```
//!
//! Each scenario does a fixed amount of work and checks every byte. An operation that fails with one of the errors
//! named, or in consequence at the other end, is made again; any other error is a failure of the scenario. At the end
//! it must be idle: work that is over costs no CPU time. With 0 workers the runtime is a `current_thread` one.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mini::runtime::{Builder, Runtime};
use mini::time::sleep;

mod streams;
mod system;
mod verdict;

use verdict::Verdict;

/// The CPU time that an idle runtime may use in [`IDLE`], in ticks of 10 ms.
const IDLE_TICKS: u64 = 10;
const IDLE: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, workers, errors @ ..] = &words[..] else { usage() };
    let verdict = Arc::new(Verdict::new(errors));
    let mut builder = match workers.parse().unwrap_or_else(|_| usage()) {
        0 => Builder::new_current_thread(),
        workers => Builder::new_multi_thread().worker_threads(workers).clone(),
    };
    // Longer than the whole may take: a shutdown that waits for nothing is seen.
    builder.shutdown_grace(Duration::from_secs(600));
    let Some(runtime) = build(builder, &verdict) else { return verdict.tell() };
    run(scenario, &runtime, &verdict);
    let idle = runtime.block_on(async {
        let before = cpu_ticks();
        sleep(IDLE).await;
        cpu_ticks() - before
    });
    if idle > IDLE_TICKS {
        verdict.wrong(format_args!("it is not idle: {idle} ticks of CPU time in {IDLE:?}"));
    }
    drop(runtime);
    verdict.tell()
}

/// The runtime, made again and again as long as that fails as it may.
fn build(builder: Builder, verdict: &Verdict) -> Option<Runtime> {
    for _ in 0..10 {
        if let Some(runtime) = verdict.check("build", builder.clone().build()) {
            return Some(runtime);
        }
    }
    verdict.over();
    None
}

fn run(scenario: &str, runtime: &Runtime, verdict: &Arc<Verdict>) {
    match scenario {
        "tcp" => runtime.block_on(streams::tcp(verdict)),
        "unix" => runtime.block_on(streams::unix(verdict)),
        "udp" => runtime.block_on(streams::udp(verdict)),
        "trickle" => runtime.block_on(streams::trickle(verdict)),
        "pipe" => runtime.block_on(streams::pipe(verdict)),
        "copy" => runtime.block_on(streams::copy(verdict)),
        "file" => runtime.block_on(system::files(verdict)),
        "child" => runtime.block_on(system::children(verdict)),
        "signal" => runtime.block_on(system::signals(verdict)),
        "timer" => runtime.block_on(system::timers(verdict)),
        "wake" => system::wakes(runtime, verdict),
        "thread" => system::threads(runtime, verdict),
        _ => usage(),
    }
}

/// What this process has used of the processors, in ticks of 10 ms (proc_pid_stat(5)).
fn cpu_ticks() -> u64 {
    loop {
        let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { continue };
        let fields = stat[stat.rfind(')').expect("a name") + 2..].split(' ');
        return fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum();
    }
}

fn usage() -> ! {
    eprintln!("usage: faults tcp|unix|udp|trickle|pipe|copy|file|child|signal|timer|wake|thread WORKERS [ERROR...]");
    std::process::exit(2)
}
