//! The page in a headless Chromium, against the program of `examples/hang.rs`: what it says of the program, what a
//! click and a key do, and that it fits a telephone.
//!
//! Without a `chromium` the test says so and does nothing; with `MINI_TEST_BROWSER=1` that is a failure. With
//! `MINI_SCREENSHOTS=folder` it leaves pictures there.

#[path = "page/browser.rs"]
mod browser;
#[allow(dead_code)] // its `main`
#[path = "../examples/hang.rs"]
mod hang;

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use browser::Browser;
use mini::runtime::Builder;
use mini::time::sleep;
use mini_console::Console;
use mini_tests::within;
use serde_json::{Value, json};

/// Tells this program to be the one that hangs.
const PROGRAM: &str = "MINI_CONSOLE_HANGS";

/// A program that hangs, ended with this.
struct Program {
    child: Child,
    page: String,
}

impl Program {
    /// This test's own program, told to run another test of it.
    fn start() -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env(PROGRAM, "1").args(["--exact", "the_program", "--ignored", "--nocapture"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let page = lines.find_map(|line| Some(line.split_once("open ")?.1.split(' ').next()?.to_owned()));
        Self { child, page: page.expect("the program says where its page is") }
    }
}

#[test]
#[ignore = "it hangs: the other test runs it"]
fn the_program() {
    if env::var_os(PROGRAM).is_none() {
        return; // `--ignored`
    }
    let runtime = Builder::new_multi_thread().worker_threads(4).warnings(true).build().unwrap();
    runtime.block_on(hang::run("127.0.0.1:0")).unwrap();
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser, unless there is none and that is no failure.
fn browser() -> Option<Browser> {
    let must = env::var_os("MINI_TEST_BROWSER").is_some_and(|value| value == "1");
    match Browser::start() {
        Ok(browser) => Some(browser),
        Err(error) if must => panic!("chromium: {error}"),
        Err(error) => {
            eprintln!("skipped, as there is no chromium: {error}");
            None
        }
    }
}

fn has(browser: &mut Browser, id: &str, texts: &[&str]) {
    for text in texts {
        let is_there = format!("document.getElementById({}).textContent.includes({})", json!(id), json!(text));
        browser.wait_for(&is_there);
    }
}

fn number(browser: &mut Browser, script: &str) -> f64 {
    browser.eval(script).as_f64().unwrap_or_else(|| panic!("{script} is no number"))
}

#[test]
fn it_tells_what_hangs_and_what_lives() {
    within(Duration::from_secs(180), || {
        let Some(mut browser) = browser() else { return };
        let mut program = Program::start();
        browser.set_size(1280, 1000);
        browser.open(&program.page);
        verdicts(&mut browser);
        let again = "document.querySelectorAll('#workers .c-running').length > 3";
        browser.wait_for(again);
        groups(&mut browser);
        details(&mut browser);
        graph(&mut browser);
        pictures(&mut browser);
        assert_eq!(browser.complaints(), Vec::<Value>::new());
        drop(program.child.kill());
        has(&mut browser, "status", &["no connection since"]);
    });
}

#[test]
fn of_very_many_tasks_groups_are_shown_and_the_end_is_told() {
    within(Duration::from_secs(180), || {
        let Some(mut browser) = browser() else { return };
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        for number in 0..11_000 {
            // Groups of one each, of which the page is told a thousand and shows some hundreds.
            let name = if number < 2_000 { format!("number {number}") } else { "one of many".to_owned() };
            let sleep = sleep(Duration::from_secs(3600));
            mini::task::Builder::new().name(name).spawn_on(sleep, runtime.handle());
        }
        let console = Console::of(runtime.handle()).serve("127.0.0.1:0").unwrap();
        browser.open(&format!("http://{}/", console.local_addr()));
        has(&mut browser, "tasks-note", &["11,000 tasks: with so many, only groups are shown"]);
        has(&mut browser, "tasks-note", &["1,001 smaller groups left out", "700 groups more: the filter finds them"]);
        has(&mut browser, "groups", &["9,000", "“one of many”", "Timer at "]);
        has(&mut browser, "graph-note", &["Left out"]);
        has(&mut browser, "verdict-list", &["Nothing found"]);
        assert_eq!(browser.eval("document.getElementById('trace').checkVisibility()"), false);
        has(&mut browser, "warnings-note", &["Warnings of this runtime are off: MINI_WARN=1 turns them on"]);
        browser.eval("document.querySelector('#groups .toggle').click()");
        has(&mut browser, "groups", &["Some of them: task "]);
        browser.wait_for("/[1-9].* (s|min)/.test(document.querySelector('#groups td:nth-child(5)').textContent)");
        browser.eval("document.getElementById('pause').click()");
        has(&mut browser, "status", &["paused"]);
        browser.eval("document.getElementById('pause').click()");
        drop(runtime);
        has(&mut browser, "status", &["the runtime shuts down, or has ended"]);
        has(&mut browser, "verdict-list", &["The runtime shuts down, or has ended"]);
        has(&mut browser, "tasks-note", &["No tasks."]);
        assert_eq!(browser.complaints(), Vec::<Value>::new());
    });
}

#[test]
fn the_only_worker_of_a_runtime_is_seen_to_be_stuck() {
    within(Duration::from_secs(180), || {
        let Some(mut browser) = browser() else { return };
        let runtime = Builder::new_current_thread().flight_recorder(64 << 10).histograms(true).build().unwrap();
        let console = Console::of(runtime.handle()).serve("127.0.0.1:0").unwrap();
        let (go_on, blocked) = channel::<()>();
        let (end, ended) = mini::sync::oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let task = mini::task::Builder::new().name("blocks").spawn(async move { blocked.recv().is_ok() });
                task.await.unwrap();
                drop(ended.await);
            });
        });
        browser.open(&format!("http://{}/", console.local_addr()));
        has(&mut browser, "verdict-list", &["Worker 0 is stuck in one poll for ", "“blocks”"]);
        let more = "/ for ([2-9]|1[0-9]).[0-9] s/.test(document.getElementById('verdict-list').textContent)";
        browser.wait_for(more); // though from one event to the next it is a second
        assert_eq!(browser.eval("document.getElementById('trace').checkVisibility()"), true);
        let size = "fetch('trace').then(answer => answer.arrayBuffer()).then(trace => trace.byteLength)";
        assert!(number(&mut browser, size) > 100.0);
        drop(go_on);
        has(&mut browser, "histograms", &["a poll", "waiting for a worker", " µs"]);
        let longest = "document.querySelector('#histograms td:last-child').textContent";
        browser.wait_for(&format!("/^[0-9.]+ s$/.test({longest})")); // the poll that blocked
        has(&mut browser, "verdict-list", &["Nothing found"]);
        has(&mut browser, "workers", &["parked"]);
        browser.picture("histograms");
        drop(end);
        thread.join().unwrap();
    });
}

fn verdicts(browser: &mut Browser) {
    let deadlock = "Possible deadlock: 2 tasks in a circle";
    let held = "waits for Lock at runtime/console/examples/hang.rs:";
    has(
        browser,
        "verdict-list",
        &[deadlock, held, "“transfer there”", "“transfer back”", " at runtime/console/examples/"],
    );
    has(browser, "verdict-list", &["Worker ", " is stuck in one poll for ", "“resize”"]);
    has(browser, "verdict-list", &["Lost: 1 task, waiting, with no waker left", "“forgotten”"]);
    has(browser, "workers", &["stalled"]);
    browser.wait_for("document.querySelectorAll('#workers .c-stalled').length > 0");
    has(browser, "blocking", &["3 threads, 0 idle", "3 jobs at "]);
    has(browser, "warnings", &["long poll", "lost task", "deadlock"]);
    has(browser, "facts", &["multi_thread"]);
    browser.wait_for("/polls\\/s[1-9]/.test(document.getElementById('facts').textContent)");
}

fn groups(browser: &mut Browser) {
    // A name is the program's: it is text.
    has(browser, "groups", &["“<b>report</b> & \"quotes\"”"]);
    assert_eq!(browser.eval("document.querySelector('b, #groups i') === null"), true);

    let counts = "[...document.querySelectorAll('#groups .toggle')].map(each => Number(each.textContent))";
    let is_sorted = |browser: &mut Browser, texts: &str| {
        let script = format!("{texts}.every((number, at, all) => !at || all[at - 1] >= number)");
        assert_eq!(browser.eval(&script), true, "{texts}");
    };
    is_sorted(browser, counts);
    browser.eval("document.querySelector('[data-sort=rate]').click()");
    let rates = "[...document.querySelectorAll('#groups tbody td:nth-child(4)')].map(each => each.textContent)";
    is_sorted(browser, &format!("{rates}.map(text => Number(text.replace(',', '')))"));
    browser.eval("document.querySelector('[data-sort=count]').click()");
    is_sorted(browser, counts);

    let filter = |text: &str| {
        format!(
            "{{ const i = document.getElementById('filter'); i.value = {}; i.dispatchEvent(new Event('input')) }}",
            json!(text)
        )
    };
    browser.eval(&filter("RESIZE stalled-no"));
    has(browser, "tasks-note", &["No task fits the filter."]);
    browser.eval(&filter("resize RUNNING"));
    assert_eq!(number(browser, "document.querySelectorAll('#groups tbody').length"), 1.0);
    browser.eval(&filter(""));
    assert!(number(browser, "document.querySelectorAll('#groups tbody').length") > 6.0);
}

/// By the keyboard: opens a group, then a task of it, and closes that.
fn details(browser: &mut Browser) {
    browser.eval("document.querySelector('#groups .toggle').focus()");
    browser.press("Enter");
    browser.wait_for("document.querySelectorAll('#groups .members li').length === 40");
    browser.press("Tab");
    browser.wait_for("document.activeElement.matches('.members .link')");
    let before = "document.querySelectorAll('#history tr').length";
    browser.press("Enter");
    browser.wait_for("document.getElementById('detail').open");
    has(browser, "detail", &["Spawned at", "hang.rs:", "Polls"]);
    browser.wait_for(&format!("{before} >= 1"));
    assert!(browser.eval("document.getElementById('history').textContent").as_str().unwrap().contains("hang.rs:"));
    browser.press("Escape");
    browser.wait_for("!document.getElementById('detail').open");
    // An update a second leaves the focus where it is.
    browser.eval("document.querySelector('#verdict-list .link').focus(); window.seen = last");
    browser.wait_for("window.seen !== last");
    assert_eq!(browser.eval("document.activeElement.closest('#verdict-list') !== null"), true);
    browser.eval("document.activeElement.click()");
    has(browser, "detail", &["Waits for", "Lock at", "Held by", "Waiting for"]);
    assert_eq!(number(browser, before), 1.0); // one wait, all the time
    browser.picture("detail");
    browser.eval("document.getElementById('close').click()");
}

fn graph(browser: &mut Browser) {
    assert_eq!(number(browser, "document.querySelectorAll('#graph path.circle:not(marker path)').length"), 2.0);
    assert_eq!(number(browser, "document.querySelectorAll('#graph g.circle').length"), 2.0);
    has(browser, "graph", &["“transfer there”", "“audit”", "“transfer back”"]);
    // They do not lie on each other.
    let places = "[...document.querySelectorAll('#graph rect')].map(r => `${r.x.baseVal.value} ${r.y.baseVal.value}`)";
    assert_eq!(browser.eval(&format!("new Set({places}).size === {places}.length")), true);
}

/// In both sizes and colours. Nothing is wider than the window.
fn pictures(browser: &mut Browser) {
    for (width, height) in [(1280, 1000), (420, 1400)] {
        browser.set_size(width, height);
        for scheme in ["light", "dark"] {
            browser.set_scheme(scheme);
            let wide = number(browser, "document.documentElement.scrollWidth");
            assert!(wide <= f64::from(width), "the page is {wide} wide in a window of {width}");
            browser.picture(&format!("{scheme}-{width}"));
        }
    }
    browser.set_scheme("light");
}
