//! The `lease` example in simulations: three clients change one register, each under the lock, while links are cut,
//! the server crashes and clients are paused. Then three mistakes, each of which some seed finds.
//!
//! What must hold: of two leases of a lock the second begins when the first is over; the register, which refuses old
//! tokens, has counted every change once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream, next_connection};
use mini::sim::{Current, Seeds, current};
use mini::time::{Instant, sleep, timeout};
use mini_tests::seeds_support::{faults, report};

#[path = "../../../examples/lease/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../../../examples/lease/server.rs"]
mod server;

use client::Client;
use server::lines::Lines;
use server::{Durability, serve};

const LEASE: Duration = Duration::from_secs(2);
const WORKERS: u64 = 3;
const ROUNDS: u64 = 4;

/// What a system may have wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// The register takes changes of a holder whose lease is over.
    TrustsHolders,
    /// The server says that the lock is held before the disk has it.
    ForgetsToSync,
    /// The register makes a change that comes again once more.
    RepeatsChanges,
}

/// A number that is read and then set: by its holders alone, if the lock is one.
struct Register {
    mistake: Mistake,
    value: u64,
    newest_token: u64,
    /// Changes that were made, by their names.
    made: BTreeSet<String>,
}

impl Register {
    fn answer(&mut self, line: &str) -> String {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["get", token] => self.get(token.parse().unwrap()),
            ["set", token, change, value] => self.set(token.parse().unwrap(), change, value.parse().unwrap()),
            _ => panic!("a line `{line}`"),
        }
    }

    /// Whether the lease of the caller is known to be over.
    ///
    /// A read counts as well: whoever reads must be sure that an older holder does not write afterwards.
    fn is_old(&mut self, token: u64) -> bool {
        let is_old = token < self.newest_token;
        self.newest_token = self.newest_token.max(token);
        is_old && self.mistake != Mistake::TrustsHolders
    }

    fn get(&mut self, token: u64) -> String {
        if self.is_old(token) { "old".to_owned() } else { self.value.to_string() }
    }

    fn set(&mut self, token: u64, change: &str, value: u64) -> String {
        if self.mistake != Mistake::RepeatsChanges && self.made.contains(change) {
            return "done".to_owned();
        }
        if self.is_old(token) {
            return "old".to_owned();
        }
        self.value = value;
        self.made.insert(change.to_owned());
        "done".to_owned()
    }
}

async fn serve_register(register: Rc<RefCell<Register>>) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:2").await?;
    loop {
        let (stream, _) = next_connection(&listener).await?;
        let register = register.clone();
        mini::task::spawn_local(async move {
            let mut lines = Lines::new(&stream);
            while let Ok(Some(line)) = lines.next().await {
                let answer = register.borrow_mut().answer(&line);
                if stream.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// The leases, by their tokens: from when to when a client took the lock for its own.
type History = Rc<RefCell<Vec<(u64, Instant, Instant)>>>;

/// A connection to the register.
#[derive(Default)]
struct Asker(Option<TcpStream>);

impl Asker {
    /// Asks until there is an answer.
    async fn ask(&mut self, request: &str) -> String {
        loop {
            if let Ok(Ok(answer)) = timeout(Duration::from_millis(300), self.try_ask(request)).await {
                return answer;
            }
            self.0 = None;
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn try_ask(&mut self, request: &str) -> io::Result<String> {
        let stream = match self.0.take() {
            Some(stream) => stream,
            None => TcpStream::connect("register:2").await?,
        };
        stream.write_all(format!("{request}\n").as_bytes()).await?;
        let answer = Lines::new(&stream).next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = Some(stream);
        Ok(answer)
    }
}

/// Makes its changes, each under the lock.
async fn work(name: String, history: History) {
    let (mut client, mut register) = (Client::new("server:1", &name), Asker::default());
    for round in 0..ROUNDS {
        let change = format!("{name}/{round}");
        loop {
            let held = client.lock("register", LEASE).await.unwrap();
            let from = Instant::now();
            let mut answer = register.ask(&format!("get {}", held.token)).await;
            if let Ok(value) = answer.parse::<u64>() {
                sleep(Duration::from_millis(50)).await;
                answer = register.ask(&format!("set {} {change} {}", held.token, value + 1)).await;
            }
            history.borrow_mut().push((held.token, from, held.until.min(Instant::now())));
            client.unlock(held).await.unwrap();
            if answer == "done" {
                break;
            }
        }
    }
}

/// Does something to the system now and then, for half a minute.
async fn trouble(sim: &Current, workers: &[String]) {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        sleep(Duration::from_millis(sim.rand() % 3000)).await;
        let worker = &workers[(sim.rand() % WORKERS) as usize];
        match sim.rand() % 7 {
            0 => sim.partition(worker, "server"),
            1 => sim.partition_oneway("server", worker),
            2 => sim.partition(worker, "register"),
            3 => sim.partition_oneway("register", worker),
            4 => sim.pause(worker),
            5 => sim.crash("server"),
            _ => sim.power_off("server"),
        }
        sleep(Duration::from_millis(sim.rand() % 4000)).await;
        sim.repair_all();
        sim.resume(workers);
        sim.restart("server");
    }
}

async fn run(mistake: Mistake) {
    let sim = current();
    sim.latency(Duration::from_millis(1)..Duration::from_millis(30)).loss(0.02);
    let durability = if mistake == Mistake::ForgetsToSync { Durability::Lazy } else { Durability::Synced };
    sim.host("server", move || async move {
        let listener = TcpListener::bind("0.0.0.0:1").await?;
        serve(listener, "/leases".into(), durability).await
    });
    let register = Register { mistake, value: 0, newest_token: 0, made: BTreeSet::new() };
    let register = Rc::new(RefCell::new(register));
    let served = register.clone();
    sim.host("register", move || serve_register(served.clone()));

    let history = History::default();
    let names: Vec<String> = (0..WORKERS).map(|number| format!("worker{number}")).collect();
    let workers: Vec<_> = names.iter().map(|name| sim.client(name, work(name.clone(), history.clone()))).collect();
    trouble(&sim, &names).await;
    for worker in workers {
        worker.await.unwrap();
    }

    let mut history = history.take();
    history.sort_unstable();
    for pair in history.windows(2) {
        let [(first, _, until), (second, from, _)] = pair else { unreachable!("pairs") };
        assert!(first < second && until <= from, "the leases {first} and {second} overlap");
    }
    assert_eq!(register.borrow().value, WORKERS * ROUNDS, "changes of the register");
}

#[mini::test(sim, seeds = 200)]
async fn every_change_is_made_once_whatever_happens() {
    run(Mistake::None).await;
}

/// One of 1,000 seeds fails as `says`, and of its faults a quarter are needed at most.
fn is_found(name: &'static str, mistake: Mistake, says: &str) {
    let report = report(|| Seeds::new("interposed::lease", name, 1000).run(|| run(mistake)));
    assert!(report.contains(says), "{report}");
    let (left, all) = faults(&report);
    assert!(left <= all / 4, "{left} faults are left:\n{report}");
}

#[test]
fn a_lease_that_outlives_a_pause_is_found() {
    is_found("a_lease_that_outlives_a_pause_is_found", Mistake::TrustsHolders, "changes of the register");
}

#[test]
fn a_missed_sync_is_found() {
    is_found("a_missed_sync_is_found", Mistake::ForgetsToSync, "overlap");
}

#[test]
fn a_retry_that_is_not_idempotent_is_found() {
    is_found("a_retry_that_is_not_idempotent_is_found", Mistake::RepeatsChanges, "changes of the register");
}
