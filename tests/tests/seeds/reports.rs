//! What the report of a failure tells: the last steps, the hosts, the faults, and what a deadlock is of.

use std::future::pending;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mini::net::{TcpListener, TcpStream};
use mini::sim::{Seeds, Sim, buggify, current};
use mini::sync::{mpsc, oneshot};
use mini::task::Builder;
use mini::time::{Duration, sleep};
use mini_tests::child_support::full_name;
use mini_tests::line_of;
use mini_tests::seeds_support::report;

/// The line of this file with that mark, as reports show it.
fn place(mark: &str) -> String {
    format!("{}:{}", file!(), line_of(include_str!("reports.rs"), mark))
}

/// The lines of the last steps.
fn steps(text: &str) -> Vec<&str> {
    let (_, steps) = text.split_once("  the last steps:\n").unwrap_or_else(|| panic!("no steps in\n{text}"));
    steps.lines().take_while(|line| line.starts_with("    ")).map(str::trim_start).collect()
}

/// The id of the task in a line.
fn id(line: &str) -> &str {
    line.split_once("task ").unwrap_or_else(|| panic!("no task in {line}")).1.split(' ').next().unwrap()
}

/// Sends eight bytes to each client.
async fn serve() -> std::io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        drop(Builder::new().name("the server").spawn(async move { stream.write_all(&[0; 8]).await }));
    }
}

/// Fails if there is a fault.
async fn asks() -> Result<(), &'static str> {
    current().rough(false).latency(Duration::from_millis(1)..Duration::from_millis(2));
    current().host("echo", serve); // the host
    current().settle().await;
    let asks = async {
        TcpStream::connect("echo:7").await.unwrap().read_exact(&mut [0; 8]).await.unwrap();
        if buggify!(1.0) { Err("broken") } else { Ok(()) } // the fault
    };
    let client = current().client("client", asks); // the task that asks
    client.await.unwrap()
}

#[test]
fn steps_say_which_task_of_which_host_ran_and_where_the_faults_were() {
    let text = report(|| Seeds::new("sim_reports", "hosts", 100).run(asks));
    let steps = steps(&text);
    let of = |host: &str, what: &str| {
        let line = steps.iter().find(|line| line.contains(&format!(" s  {host}: task ")) && line.contains(what));
        *line.unwrap_or_else(|| panic!("no {what} of {host} in\n{text}"))
    };
    let host = of("echo", &format!(" of {}", place("// the host")));
    of("echo", " \"the server\"");
    of("client", &format!(" of {}", place("// the task that asks")));
    assert!(text.contains(&format!("\n  task {} spawned at ", id(host))), "the dump has the same ids\n{text}");
    let [before, fault, last] = &steps[steps.len() - 3..] else { panic!("{text}") };
    assert!(before.contains("client: task ") && last.ends_with(" s  main"), "{text}");
    assert!(fault.ends_with(&format!(" s  #1 buggify {}", place("// the fault"))), "{text}");
}

#[test]
fn an_error_that_a_test_returns_has_a_report_as_a_panic_has() {
    let text = report(|| Seeds::new("sim_reports", "returns", 100).run(asks));
    assert!(
        text.contains(": the test returned an error: \"broken\"\n  shrunk: 1 of 1 faults is needed: #1 "),
        "{text}"
    );
    assert!(text.contains(" s of virtual time, 1 task\n  the main task is running\n  task "), "{text}");
    assert!(text.contains(", waiting: Accept on fd ") && text.contains("\n  the last steps:\n"), "{text}");
    assert!(!text.contains("runtime") && !text.contains("for at least"), "of real time\n{text}");
}

#[test]
fn tasks_that_run_in_turn_have_one_line() {
    let (to, mut from_main) = mpsc::channel(1);
    let (back, mut answers) = mpsc::channel(1);
    let failure = Sim::new(1).run(async move {
        mini::spawn(async move {
            while let Some(number) = from_main.recv().await {
                sleep(Duration::from_millis(1)).await;
                back.send(number).await.unwrap();
            }
        });
        for number in 0..60 {
            to.send(number).await.unwrap();
            answers.recv().await.unwrap();
        }
        panic!("at last");
    });
    let text = failure.unwrap_err().to_string();
    assert!(text.contains(", in turn, "), "{text}");
    assert!(steps(&text)[0] == "..." && steps(&text).len() <= 41, "{text}");
}

#[test]
fn a_deadlock_tells_of_paused_hosts_and_else_of_threads() {
    let threads = "\n  threads that the program starts are neither simulated nor waited for\n";
    let told = |paused: &'static [&'static str]| {
        let failure = Sim::new(3).run(async move {
            let (send, receive) = oneshot::channel::<()>();
            let slow = current().client("slow", async move {
                sleep(Duration::from_secs(1)).await;
                drop(send);
            });
            current().host("other", pending::<()>);
            current().settle().await;
            current().pause(paused);
            drop(receive.await);
            slow.await.unwrap();
            pending::<()>().await
        });
        failure.unwrap_err().to_string()
    };
    let text = told(&["slow"]);
    assert!(text.contains("\n  host slow is paused: its tasks wait until `resume`\n"), "{text}");
    assert!(!text.contains(threads), "{text}");
    let text = told(&["other", "slow"]);
    assert!(text.contains("\n  hosts slow, other are paused: their tasks wait until `resume`\n"), "{text}");
    let text = told(&[]);
    assert!(text.contains(threads) && !text.contains("paused"), "{text}");
    let text = Sim::new(1).run(async { TcpListener::bind("0.0.0.0:7").await.unwrap().accept().await.map(drop) });
    assert!(!text.unwrap_err().to_string().contains(threads), "sockets are simulated");
}

#[test]
fn a_dump_tells_the_hosts_of_tasks() {
    let replicas = ["a", "b", "c", "d"];
    let program = async {
        current().host("db", async || {
            let first = Builder::new().name("first").spawn(pending::<()>());
            Builder::new().name("second").spawn(async { first.await.unwrap() }).await.unwrap();
        });
        for replica in replicas {
            current().host(replica, async || Builder::new().name("replica").spawn(pending::<()>()).await.unwrap());
        }
        drop(Builder::new().name("own").spawn(sleep(Duration::from_secs(7200))));
        pending::<()>().await
    };
    let failure = Sim::new(5).run(program).unwrap_err();
    let dump = failure.dump().unwrap();
    let host_of = |name| dump.tasks().iter().find(|task| task.name() == Some(name)).unwrap().host();
    assert_eq!(["first", "second", "own"].map(host_of), [Some("db"), Some("db"), Some("test")]);
    let text = failure.to_string();
    let line = |name: &str| text.lines().find(|line| line.contains(&format!(" \"{name}\" "))).unwrap();
    assert!(line("second").contains(" on host db, waiting: Join"), "{text}");
    assert!(line("replica").contains(" on hosts a, b, c and 1 more, LOST"), "{text}");
    let json = dump.groups_to_json(100);
    assert!(dump.to_json().contains(r#""host":"db""#) && json.contains(r#""hosts":["a","b","c","d"]"#), "{json}");
}

#[test]
fn faults_of_the_network_name_hosts() {
    let program = async || {
        current().host("echo", serve);
        current().settle().await;
        let client = current().client("client", async {
            for _ in 0..200 {
                TcpStream::connect("echo:7").await.unwrap().read_exact(&mut [0; 8]).await.unwrap();
            }
        });
        client.await.unwrap();
        panic!("at last");
    };
    let failure = Sim::new(1).run(program()).unwrap_err();
    let texts: Vec<&str> = failure.faults().iter().map(|fault| &fault.text[..]).collect();
    let is_of = |text: &str, what: &str, where_: &[&str]| {
        text.starts_with(what) && where_.iter().any(|place| text.ends_with(place))
    };
    let ways = ["from echo to client", "from client to echo"];
    for (what, places) in [
        ("a spurious wake-up ", &["on echo", "on client"]),
        ("a short write of ", &ways),
        ("a first segment of ", &ways),
    ] {
        let all: Vec<_> = texts.iter().filter(|text| text.starts_with(what)).collect();
        assert!(!all.is_empty() && all.iter().all(|text| is_of(text, what, places)), "{texts:?}");
    }
}

/// How many seeds there were before.
static BEGUN: AtomicU64 = AtomicU64::new(0);

#[mini::test(sim, seeds = 1)]
#[ignore = "the next one runs it"]
async fn differs_each_time() {
    let naps = BEGUN.fetch_add(1, Relaxed) + 1;
    let nap = async move { sleep(Duration::from_millis(naps)).await };
    current().client("sleeper", nap).await.unwrap(); // the client
}

#[test]
fn two_runs_that_differ_are_told_with_what_lasts() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", full_name("differs_each_time"), "--ignored"])
        .env("MINI_SIM_CHECK", "1")
        .env_remove("MINI_SEED");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let who = format!("a task of {} on sleeper at ", place("// the client"));
    assert!(text.contains(&format!("two runs differ, first in step 2: {who}")), "{text}");
    assert!(text.contains("\n  use `mini::sim::interpose!()` in this ") || !cfg!(target_os = "linux"), "{text}");
}

/// Fails in another way, in the same words, if one of two faults is left out.
async fn fails_in_two_places() {
    drop(mini::spawn(async {
        let (first, second) = (buggify!(1.0), buggify!(1.0));
        let lost = |is_lost: bool| if is_lost { Err("lost") } else { Ok(()) };
        lost(first && second).unwrap(); // it needs both
        lost(first).unwrap();
    }));
    pending::<()>().await;
}

#[test]
fn a_panic_that_nobody_awaits_is_not_taken_for_another_one_in_the_same_words() {
    let text = report(|| Seeds::new("sim_reports", "two_places", 1).run(fails_in_two_places));
    assert!(text.contains(&format!("(at {})", place("// it needs both"))), "{text}");
    assert!(text.contains("shrunk: 2 of 2 faults are needed"), "{text}");
}
