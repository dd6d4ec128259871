//! Bugs that need a host, a link or a datagram to misbehave.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

use mini::net::{TcpListener, TcpStream, UdpSocket};
use mini::sim::{current, rand};
use mini::task::spawn_local;
use mini::time::{Duration, Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A client that hears no answer sends its request again over a new connection, though the server may have done it.
///
/// Published: requests of the method POST that an HTTP client sent twice
/// (<https://github.com/nahi/httpclient/issues/142>).
pub(super) async fn repeated_request(is_mended: bool) {
    let (sim, orders) = (current(), Rc::new(RefCell::new(Vec::new())));
    sim.latency(ms(1)..ms(20));
    let kept = orders.clone();
    sim.host("shop", move || {
        let orders = kept.clone();
        async move {
            let listener = TcpListener::bind("0.0.0.0:80").await?;
            loop {
                let (stream, orders) = (listener.accept().await?.0, orders.clone());
                drop(spawn_local(async move {
                    let mut order = [0];
                    while stream.read_exact(&mut order).await.is_ok() {
                        if !is_mended || !orders.borrow().contains(&order[0]) {
                            orders.borrow_mut().push(order[0]);
                        }
                        let _ = stream.write_all(&order).await;
                    }
                }));
            }
            #[expect(unreachable_code, reason = "it says what `?` returns")]
            io::Result::Ok(())
        }
    });
    sim.settle().await;
    let client = sim.client("client", async {
        let order = async |number: u8| {
            let stream = TcpStream::connect("shop:80").await?;
            stream.write_all(&[number]).await?;
            stream.read_exact(&mut [0]).await.map(drop)
        };
        for number in 0..10 {
            while !matches!(timeout(SECOND, order(number)).await, Ok(Ok(()))) {}
        }
    });
    sleep(ms(rand() % 200)).await;
    sim.partition("client", "shop");
    sleep(3 * SECOND).await;
    sim.repair_all();
    client.await.unwrap();
    assert_eq!(*orders.borrow(), (0..10).collect::<Vec<_>>(), "an order was taken twice");
}

/// The holder of a lease does its work and writes the result; a pause in between may outlast the lease.
///
/// Published: the locks of etcd 3.4.3 exclude nobody, as a client cannot know that its lease has ended
/// (K. Kingsbury, Jepsen: etcd 3.4.3, 2020, <https://jepsen.io/analyses/etcd-3.4.3>).
pub(super) async fn outlived_lease(is_mended: bool) {
    const LEASE: Duration = Duration::from_secs(5);
    #[derive(Default)]
    struct Service {
        lease: Cell<Option<(u64, Instant)>>,
        tokens: Cell<u64>,
        /// The value of the storage, and the highest token that it has seen.
        value: Cell<u64>,
        seen: Cell<u64>,
        writes: Cell<u64>,
    }
    impl Service {
        async fn lock(&self) -> u64 {
            while self.lease.get().is_some_and(|(_, until)| Instant::now() < until) {
                sleep(ms(100)).await;
            }
            self.tokens.set(self.tokens.get() + 1);
            self.lease.set(Some((self.tokens.get(), Instant::now() + LEASE)));
            self.tokens.get()
        }
        fn unlock(&self, token: u64) {
            self.lease.set(self.lease.get().filter(|(other, _)| *other != token));
        }
        fn is_fenced(&self, token: u64) -> bool {
            self.seen.set(self.seen.get().max(token));
            token < self.seen.get()
        }
    }
    let (sim, service) = (current(), Rc::new(Service::default()));
    let clients = ["one", "other"].map(|name| {
        let service = service.clone();
        sim.client(name, async move {
            for _ in 0..5 {
                let token = service.lock().await;
                service.is_fenced(token);
                let value = service.value.get();
                sleep(ms(100)).await; // computes
                if !(is_mended && service.is_fenced(token)) {
                    service.value.set(value + 1);
                    service.writes.set(service.writes.get() + 1);
                }
                service.unlock(token);
            }
        })
    });
    sleep(ms(rand() % 1500)).await;
    sim.pause("one");
    sleep(2 * LEASE).await;
    sim.resume("one");
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(service.value.get(), service.writes.get(), "a write under a lease that had ended");
}

/// The server releases a lock for any request that has the name of its holder: a release that comes twice frees the
/// lock that the same client has taken again.
pub(super) async fn late_release(is_mended: bool) {
    const ACQUIRE: u8 = 0;
    const RELEASE: u8 = 1;
    let sim = current();
    sim.latency(ms(1)..ms(40)).duplication(0.02);
    sim.host("lock", move || async move {
        let socket = UdpSocket::bind("0.0.0.0:9").await?;
        let (mut holder, mut released) = (None, [0; 2]);
        loop {
            let mut request = [0; 3];
            let (_, from) = socket.recv_from(&mut request).await?;
            let [kind, client, lock] = request;
            let is_held = holder == Some((client, lock));
            if kind == RELEASE {
                if is_held || !is_mended && holder.is_some_and(|(other, _)| other == client) {
                    holder = None;
                }
                released[client as usize] = lock.max(released[client as usize]);
            } else if lock > released[client as usize] && (is_held || holder.is_none()) {
                holder = Some((client, lock));
                socket.send_to(&[lock], from).await?;
            }
        }
        #[expect(unreachable_code, reason = "it says what `?` returns")]
        io::Result::Ok(())
    });
    sim.settle().await;
    let (inside, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let clients = [0, 1].map(|number: u8| {
        let (inside, most) = (inside.clone(), most.clone());
        sim.client(&format!("client {number}"), async move {
            let socket = UdpSocket::bind("0.0.0.0:0").await?;
            socket.connect("lock:9").await?;
            for lock in 1..=10 {
                let mut answer = [0];
                while answer[0] != lock {
                    socket.send(&[ACQUIRE, number, lock]).await?;
                    let _ = timeout(ms(100), socket.recv(&mut answer)).await;
                }
                inside.set(inside.get() + 1);
                most.set(inside.get().max(most.get()));
                sleep(ms(30)).await;
                inside.set(inside.get() - 1);
                socket.send(&[RELEASE, number, lock]).await?;
            }
            io::Result::Ok(())
        })
    });
    for client in clients {
        client.await.unwrap().unwrap();
    }
    assert_eq!(most.get(), 1, "the lock has two holders");
}

/// A primary acknowledges what it has written itself. A replica that hears nothing of it takes over.
///
/// Published: GitHub's incident of October 21, 2018. After a partition of 43 seconds the other coast had become the
/// primary, without the last writes of the first (<https://github.blog/2018-10-30-oct21-post-incident-analysis/>).
pub(super) async fn two_primaries(is_mended: bool) {
    const TAKES_OVER: Duration = Duration::from_secs(10);
    type Numbers = Rc<RefCell<BTreeSet<u8>>>;
    async fn west(log: Numbers, is_primary: Rc<Cell<bool>>) -> io::Result<()> {
        let socket = UdpSocket::bind("0.0.0.0:3306").await?;
        let mut write = [0];
        while let Ok(received) = timeout(TAKES_OVER, socket.recv_from(&mut write)).await {
            log.borrow_mut().insert(write[0]);
            socket.send_to(&write, received?.1).await?;
        }
        is_primary.set(true);
        Ok(())
    }
    async fn east(acknowledged: Numbers, is_mended: bool) -> io::Result<()> {
        let socket = UdpSocket::bind("0.0.0.0:0").await?;
        let mut log = Vec::new();
        for write in 0..40 {
            log.push(write);
            if !is_mended {
                acknowledged.borrow_mut().insert(write);
            }
            for write in &log {
                socket.send_to(&[*write], "west:3306").await?; // again until the replica has it
            }
            let end = Instant::now() + SECOND;
            let mut replicated = [0];
            while let Ok(received) = mini::time::timeout_at(end, socket.recv(&mut replicated)).await {
                received?;
                log.retain(|write| *write != replicated[0]);
                acknowledged.borrow_mut().insert(replicated[0]);
            }
        }
        Ok(())
    }
    let (sim, acknowledged, replicated) = (current(), Numbers::default(), Numbers::default());
    let is_primary = Rc::new(Cell::new(false));
    let (log, is_new) = (replicated.clone(), is_primary.clone());
    sim.host("west", move || west(log.clone(), is_new.clone()));
    sim.settle().await;
    let east = sim.client("east", east(acknowledged.clone(), is_mended));
    sleep(ms(rand() % 20_000)).await;
    sim.partition("east", "west");
    sleep(ms(rand() % 15_000)).await;
    sim.repair_all();
    east.await.unwrap().unwrap();
    let has_all = acknowledged.borrow().is_subset(&replicated.borrow());
    assert!(!is_primary.get() || has_all, "the new primary lacks a write that was acknowledged");
}
