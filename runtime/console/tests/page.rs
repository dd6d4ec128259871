//! The page in a headless Chromium. One program is `examples/hang.rs`; others are busy, have very many tasks, or only
//! one worker. The tests check the content after the script ran, clicks and keys, and that the page fits a telephone.
//!
//! Without a `chromium` the tests print that and do nothing. With `MINI_TEST_BROWSER=1` that is a failure, and the
//! address of the README is used, otherwise any free port. `MINI_SCREENSHOTS=folder` leaves pictures there.

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
use std::time::{Duration, Instant};

use browser::Browser;
use mini::runtime::Builder;
use mini::time::sleep;
use mini_console::Console;
use mini_tests::within;
use serde_json::{Value, json};

/// Makes this program the one that hangs, with its page at the address that is the value.
const PROGRAM: &str = "MINI_CONSOLE_HANGS_AT";

/// The README names the address that users open.
const README: &str = include_str!("../README.md");

/// A program that hangs, ended with this.
struct Program {
    child: Child,
    page: String,
}

impl Program {
    /// Starts this test's own program once more, to run the test that hangs.
    fn start(addr: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env(PROGRAM, addr).args(["--exact", "the_program", "--ignored", "--nocapture"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let page = lines.find_map(|line| Some(line.split_once("open ")?.1.split(' ').next()?.to_owned()));
        Self { child, page: page.unwrap_or_else(|| panic!("no page at {addr}: is the port in use?")) }
    }
}

#[test]
#[ignore = "it hangs: the other test runs it"]
fn the_program() {
    let Ok(addr) = env::var(PROGRAM) else { return }; // `--ignored`
    let runtime = Builder::new_multi_thread().worker_threads(4).warnings(true).build().unwrap();
    runtime.block_on(hang::run(&addr)).unwrap();
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A missing browser is a failure, and the address of the README must be free.
fn is_strict() -> bool {
    env::var_os("MINI_TEST_BROWSER").is_some_and(|value| value == "1")
}

/// A browser, unless there is none and that is no failure.
fn browser() -> Option<Browser> {
    match Browser::start() {
        Ok(browser) => Some(browser),
        Err(error) if is_strict() => panic!("chromium: {error}"),
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
        let page = README.split_whitespace().find(|word| word.starts_with("http://127")).unwrap();
        let addr = page.strip_prefix("http://").unwrap().trim_end_matches('/');
        let mut program = Program::start(if is_strict() { addr } else { "127.0.0.1:0" });
        assert!(!is_strict() || program.page == page, "{}", program.page);
        browser.set_size(1280, 1000);
        browser.open(&program.page);
        verdicts(&mut browser);
        links(&mut browser);
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
        for number in 0..11_000_u32 {
            // Two thousand groups of one task: the page receives a thousand and shows some hundreds. Names that differ
            // in their numbers would be one group.
            let letter = |at: u32| char::from(b'a' + (number / at % 26) as u8);
            let name =
                if number < 2_000 { [676, 26, 1].map(letter).iter().collect() } else { "one of many".to_owned() };
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
        has(&mut browser, "warnings-note", &["Warnings are off: MINI_WARN=1 turns them on"]);
        has(
            &mut browser,
            "off",
            &["Builder::flight_recorder(1 << 20)", "MINI_TRACE=FILE", "Builder::histograms(true)"],
        );
        assert_eq!(number(&mut browser, "document.querySelectorAll('a.path').length"), 0.0);
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

#[test]
fn a_busy_program_has_no_problems() {
    within(Duration::from_secs(180), || {
        let Some(mut browser) = browser() else { return };
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).warnings(true).histograms(true).flight_recorder(64 << 10).build();
        let runtime = runtime.unwrap();
        for _ in 0..4 {
            mini::task::Builder::new().name("compute").spawn_on(compute(), runtime.handle());
        }
        let console = Console::of(runtime.handle()).serve("127.0.0.1:0").unwrap();
        browser.set_size(1280, 1000);
        browser.open(&format!("http://{}/", console.local_addr()));
        has(&mut browser, "workers", &["at work"]);
        let busy = |worker: u32| {
            let numbers = format!("document.querySelectorAll('#workers .numbers')[{worker}].textContent");
            format!("/^([5-9][0-9]|100) % busy, [1-9]/.test({numbers})")
        };
        browser.wait_for(&format!("{} && {}", busy(0), busy(1)));
        let heights = "[...document.querySelectorAll('#workers .c-running')].map(bar => bar.height.baseVal.value)";
        browser.wait_for(&format!("{heights}.filter(height => height > 5).length >= 10"));
        has(&mut browser, "groups", &["“compute”"]);
        browser.wait_for("Number(document.querySelector('#groups td:nth-child(4)').textContent.replace(',', '')) > 0");
        has(&mut browser, "histograms", &["a poll", "waiting for a worker"]);
        has(&mut browser, "verdict-list", &["Nothing found"]);
        assert_eq!(browser.eval("document.title"), "mini console");
        assert_eq!(browser.eval("document.getElementById('trace').checkVisibility()"), true);
        assert_eq!(browser.eval("document.getElementById('off').textContent"), ""); // all is on
        for scheme in ["light", "dark"] {
            browser.set_scheme(scheme);
            browser.picture(&format!("busy-{scheme}"));
        }
        assert_eq!(browser.complaints(), Vec::<Value>::new());
    });
}

/// Computes for ever, in polls of 200 µs.
async fn compute() {
    loop {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(200) {}
        mini::task::yield_now().await;
    }
}

/// Lines of code, and the content of the page as a file.
fn links(browser: &mut Browser) {
    let link = browser.eval("document.querySelector('#verdict-list a.path').href");
    let line = concat!("vscode://file", env!("CARGO_MANIFEST_DIR"), "/examples/hang.rs:");
    assert!(link.as_str().unwrap().starts_with(line), "{link}");
    assert_eq!(browser.eval("document.querySelector('a[href=json][download]').checkVisibility()"), true);
    let circles = "fetch('json').then(answer => answer.json()).then(event => event.dump.circles.length)";
    assert_eq!(number(browser, circles), 1.0);
}

fn verdicts(browser: &mut Browser) {
    let deadlock = "Possible deadlock: 2 tasks in a circleEach waits for the next one, or for a lock";
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
    for _ in 0..3 {
        browser.press("Tab"); // over the lines of the spawn and of the wait
    }
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
    has(browser, "detail", &["Waits for", "Lock at", "Last taken by", "Waiting for"]);
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
    for (width, height) in [(1280, 2000), (420, 2800)] {
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
