//! What a test does to the hosts and the network of its simulation.

use std::fmt;
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use mini_context::sim::inject;
use mini_net::sim as network;
use mini_net::sim::Quality;

use super::Outcome;
use super::current::Current;
use super::{disk, hosts};
use crate::task::{JoinHandle, spawn_local};

/// The links between two hosts, in both directions; of [`Current::link`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// mini::sim::Sim::new(7)
///     .run(async {
///         let sim = mini::sim::current();
///         sim.host("far", || async {});
///         let away = Duration::from_millis(80)..Duration::from_millis(120);
///         sim.link("test", "far").latency(away).loss(0.01);
///     })
///     .unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct Link {
    ends: (u32, u32),
}

/// One host or several, by their names.
///
/// # Examples
///
/// ```
/// mini::sim::Sim::new(7)
///     .run(async {
///         let sim = mini::sim::current();
///         for name in ["a", "b", "c"] {
///             sim.host(name, || async {});
///         }
///         sim.partition("a", "b");
///         sim.partition("a", ["b", "c"]);
///         sim.repair_all();
///     })
///     .unwrap();
/// ```
pub trait Names {
    /// Calls `f` with each name.
    fn each(&self, f: &mut dyn FnMut(&str));
}

impl Names for str {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        f(self);
    }
}

impl Names for String {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        f(self);
    }
}

impl<T: Names + ?Sized> Names for &T {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        (**self).each(f);
    }
}

impl<T: Names, const N: usize> Names for [T; N] {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        self.iter().for_each(|name| name.each(f));
    }
}

impl<T: Names> Names for [T] {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        self.iter().for_each(|name| name.each(f));
    }
}

impl<T: Names> Names for Vec<T> {
    fn each(&self, f: &mut dyn FnMut(&str)) {
        self.iter().for_each(|name| name.each(f));
    }
}

/// The number of a host.
#[track_caller]
pub(super) fn number(name: &str) -> u32 {
    network::host(name).unwrap_or_else(|| panic!("the simulation has no host of the name `{name}`"))
}

#[track_caller]
fn numbers(names: impl Names) -> Vec<u32> {
    let mut all = Vec::new();
    names.each(&mut |name| all.push(name.to_owned()));
    all.iter().map(|name| number(name)).collect()
}

/// Every pair of one of the first and one of the second, which are different hosts.
#[track_caller]
fn pairs(first: impl Names, second: impl Names) -> Vec<(u32, u32)> {
    let (first, second) = (numbers(first), numbers(second));
    let all = first.iter().flat_map(|&one| second.iter().map(move |&other| (one, other)));
    all.filter(|(one, other)| one != other).collect()
}

/// For the text of a fault.
fn shown(pairs: &[(u32, u32)], arrow: &str) -> String {
    let pair = |(one, other): &(u32, u32)| format!("{}{arrow}{}", network::host_name(*one), network::host_name(*other));
    pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
}

/// Hosts. The test itself runs on a host of the name `test`.
impl Current {
    /// Adds a host, which runs what `start` makes, at once and again after each [`restart`](Self::restart).
    ///
    /// Its name is known to [`lookup_host`](crate::net::lookup_host) and to all that connects by name. Tasks that are
    /// spawned by it belong to the host. If its future ends with an error, or panics, the simulation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::net::{TcpListener, TcpStream};
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         sim.host("echo", || async {
    ///             let listener = TcpListener::bind("0.0.0.0:7").await?;
    ///             while let Ok((stream, _)) = listener.accept().await {
    ///                 mini::spawn(async move {
    ///                     let mut buf = [0; 1024];
    ///                     while let Ok(count @ 1..) = stream.read(&mut buf).await {
    ///                         stream.write_all(&buf[..count]).await?;
    ///                     }
    ///                     Ok::<(), std::io::Error>(())
    ///                 });
    ///             }
    ///             Ok::<(), std::io::Error>(())
    ///         });
    ///         sim.settle().await; // it listens
    ///         let stream = TcpStream::connect("echo:7").await.unwrap();
    ///         stream.write_all(b"hello").await.unwrap();
    ///         let mut buf = [0; 5];
    ///         stream.read_exact(&mut buf).await.unwrap();
    ///         assert_eq!(&buf, b"hello");
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If there is a host of that name.
    #[track_caller]
    pub fn host<S, F>(&self, name: &str, start: S)
    where
        S: Fn() -> F + 'static,
        F: Future<Output: Outcome> + 'static,
    {
        let host = self.add(name);
        let name: Rc<str> = name.into();
        let start = Rc::new(move || -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
            let (name, future) = (name.clone(), start());
            Box::pin(async move {
                if let Some(text) = future.await.into_failure() {
                    panic!("host {name}: {text}");
                }
            })
        });
        hosts::note_start(host, start);
        begin(host);
    }

    /// Adds a host that runs `future` once, and returns the handle of its task.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         let client = sim.client("client", async { 5 });
    ///         assert_eq!(client.await.unwrap(), 5);
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If there is a host of that name.
    #[track_caller]
    pub fn client<F: Future + 'static>(&self, name: &str, future: F) -> JoinHandle<F::Output> {
        let host = self.add(name);
        let handle = spawn_local(future);
        hosts::note_task(handle.id().get(), host);
        handle
    }

    #[track_caller]
    fn add(&self, name: &str) -> u32 {
        assert!(network::host(name).is_none(), "the simulation has a host of the name `{name}`");
        hosts::begin(self.core());
        network::add_host(name)
    }

    /// The host is gone: its tasks are dropped and its sockets closed, and those that are connected to it hear of it by
    /// a reset, if that reaches them. What its files have not synced may be lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use mini::net::TcpListener;
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         sim.host("server", || async {
    ///             let listener = TcpListener::bind("0.0.0.0:80").await?;
    ///             listener.accept().await.map(drop)
    ///         });
    ///         sim.crash("server");
    ///         assert!(!sim.is_up("server"));
    ///         sim.restart("server");
    ///         assert!(sim.is_up("server"));
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such host, or if it is that of the test.
    #[track_caller]
    pub fn crash(&self, names: impl Names) {
        self.take_down(names, "crash", true);
    }

    /// As [`crash`](Self::crash), but nobody hears of it: those that are connected wait, or find out by themselves.
    ///
    /// # Examples
    ///
    /// See [`crash`](Self::crash).
    ///
    /// # Panics
    ///
    /// As [`crash`](Self::crash).
    #[track_caller]
    pub fn power_off(&self, names: impl Names) {
        self.take_down(names, "power-off", false);
    }

    #[track_caller]
    fn take_down(&self, names: impl Names, what: &str, resets: bool) {
        for host in numbers(names) {
            assert!(host != 0, "the host of the test cannot go down");
            if network::is_up(host) && inject(|| format!("{what} of {}", network::host_name(host))) {
                network::take_down(host, resets);
                hosts::kill(host, self.core());
                disk::crash(host);
            }
        }
    }

    /// Starts hosts that have crashed, or whose future has come to its end. Those that are up are left alone.
    ///
    /// # Examples
    ///
    /// See [`crash`](Self::crash).
    ///
    /// # Panics
    ///
    /// If there is no such host, or if it was added by [`client`](Self::client).
    #[track_caller]
    pub fn restart(&self, names: impl Names) {
        for host in numbers(names) {
            if !network::is_up(host) || hosts::is_over(host) {
                begin(host);
            }
        }
    }

    /// Whether the host is up.
    ///
    /// # Examples
    ///
    /// See [`crash`](Self::crash).
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn is_up(&self, name: &str) -> bool {
        network::is_up(number(name))
    }

    /// The tasks of these hosts do not run until they are [resumed](Self::resume), while time goes on: as a process
    /// that is stopped, or whose machine is too busy. What is sent to the host arrives.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use mini::time::{Instant, sleep};
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         let begin = Instant::now();
    ///         let slow = sim.client("slow", async { sleep(Duration::from_secs(1)).await });
    ///         sim.settle().await;
    ///         sim.pause("slow");
    ///         sleep(Duration::from_secs(10)).await;
    ///         assert!(!slow.is_finished());
    ///         sim.resume("slow");
    ///         slow.await.unwrap();
    ///         assert_eq!(begin.elapsed().as_secs(), 10);
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such host, or if it is that of the test.
    #[track_caller]
    pub fn pause(&self, names: impl Names) {
        for host in numbers(names) {
            assert!(host != 0, "the host of the test cannot be paused: nobody would resume it");
            if network::is_up(host) && inject(|| format!("pause of {}", network::host_name(host))) {
                hosts::pause(host);
            }
        }
    }

    /// Ends a [`pause`](Self::pause).
    ///
    /// # Examples
    ///
    /// See [`pause`](Self::pause).
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn resume(&self, names: impl Names) {
        for host in numbers(names) {
            hosts::thaw(Some(host), self.core());
        }
    }

    /// The address of a host.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         sim.host("server", || async {});
    ///         let addrs: Vec<_> = mini::net::lookup_host("server:80").await.unwrap().collect();
    ///         assert_eq!(addrs[0].ip(), sim.lookup("server"));
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn lookup(&self, name: &str) -> IpAddr {
        network::host_ip(number(name))
    }
}

/// The network between them. Within a host nothing is lost, and nothing takes time.
impl Current {
    /// How long a packet takes between any two hosts: each time in the range is equally likely. 0.1 to 2 ms by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         sim.latency(Duration::from_millis(1)..Duration::from_millis(20)).loss(0.01);
    ///     })
    ///     .unwrap();
    /// ```
    pub fn latency(&self, range: Range<Duration>) -> &Self {
        network::set_link(None, set_latency(range));
        self
    }

    /// How likely it is that a packet is lost: 0 by default. To a connection of TCP that is a delay.
    ///
    /// # Examples
    ///
    /// See [`latency`](Self::latency).
    pub fn loss(&self, probability: f64) -> &Self {
        network::set_link(None, |link| link.loss = probability);
        self
    }

    /// How likely it is that a datagram comes twice: 0 by default.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::sim::Sim::new(7).run(async { mini::sim::current().duplication(0.1).loss(0.1); }).unwrap();
    /// ```
    pub fn duplication(&self, probability: f64) -> &Self {
        network::set_link(None, |link| link.duplication = probability);
        self
    }

    /// Whether the network is rough, as it is by default: now and then a write takes less than it could, what was sent
    /// comes in two parts, or a task is woken for nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::sim::Sim::new(7).run(async { mini::sim::current().rough(false); }).unwrap();
    /// ```
    pub fn rough(&self, is_rough: bool) -> &Self {
        network::set_rough(is_rough);
        self
    }

    /// The links between two hosts, in both directions.
    ///
    /// # Examples
    ///
    /// See [`Link`].
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn link(&self, one: &str, other: &str) -> Link {
        Link { ends: (number(one), number(other)) }
    }

    /// Cuts the links between each of the first hosts and each of the second: what is sent is lost, and nobody is told.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use mini::net::{TcpListener, TcpStream};
    /// use mini::time::timeout;
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         sim.host("server", || async {
    ///             let listener = TcpListener::bind("0.0.0.0:80").await?;
    ///             listener.accept().await.map(drop)
    ///         });
    ///         sim.settle().await;
    ///         sim.partition("test", "server");
    ///         let connect = TcpStream::connect("server:80");
    ///         assert!(timeout(Duration::from_secs(5), connect).await.is_err());
    ///         sim.repair("test", "server");
    ///         TcpStream::connect("server:80").await.unwrap();
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn partition(&self, first: impl Names, second: impl Names) {
        let pairs = pairs(first, second);
        if inject(|| format!("partition {}", shown(&pairs, "|"))) {
            for (one, other) in pairs {
                network::cut(one, other);
                network::cut(other, one);
            }
        }
    }

    /// Cuts the links from each of the first hosts to each of the second, but not those back.
    ///
    /// # Examples
    ///
    /// As [`partition`](Self::partition).
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn partition_oneway(&self, from: impl Names, to: impl Names) {
        let pairs = pairs(from, to);
        if inject(|| format!("partition {}", shown(&pairs, "->"))) {
            pairs.into_iter().for_each(|(from, to)| network::cut(from, to));
        }
    }

    /// What is sent between these hosts waits until it is [released](Self::release), and is not lost. A link that is cut
    /// stays so.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         sim.host("server", || async {});
    ///         sim.hold("test", "server");
    ///         sim.release("test", "server");
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn hold(&self, first: impl Names, second: impl Names) {
        let pairs = pairs(first, second);
        if inject(|| format!("hold {}", shown(&pairs, "|"))) {
            for (one, other) in pairs {
                network::hold(one, other);
                network::hold(other, one);
            }
        }
    }

    /// Ends a [`hold`](Self::hold): all that waited comes now.
    ///
    /// # Examples
    ///
    /// See [`hold`](Self::hold).
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn release(&self, first: impl Names, second: impl Names) {
        for (one, other) in pairs(first, second) {
            network::release(one, other);
            network::release(other, one);
        }
    }

    /// Ends a [partition](Self::partition), in both directions.
    ///
    /// Connections go on when they next try, as those of TCP do: that may take as long as the partition has lasted.
    ///
    /// # Examples
    ///
    /// See [`partition`](Self::partition).
    ///
    /// # Panics
    ///
    /// If there is no such host.
    #[track_caller]
    pub fn repair(&self, first: impl Names, second: impl Names) {
        for (one, other) in pairs(first, second) {
            network::open(one, other);
            network::open(other, one);
        }
    }

    /// Opens all links that are cut or held.
    ///
    /// # Examples
    ///
    /// As [`repair`](Self::repair).
    pub fn repair_all(&self) {
        for (from, to) in network::blocked() {
            network::open(from, to);
        }
    }

    /// The links that are cut or held, by the names of their ends.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         sim.host("server", || async {});
    ///         sim.partition_oneway("test", "server");
    ///         assert_eq!(sim.links(), [("test".to_owned(), "server".to_owned())]);
    ///     })
    ///     .unwrap();
    /// ```
    pub fn links(&self) -> Vec<(String, String)> {
        let names = |(from, to)| (network::host_name(from), network::host_name(to));
        network::blocked().into_iter().map(names).collect()
    }
}

impl Link {
    /// As [`Current::latency`], for these hosts.
    ///
    /// # Examples
    ///
    /// See [`Link`].
    pub fn latency(self, range: Range<Duration>) -> Self {
        self.change(set_latency(range))
    }

    /// As [`Current::loss`], for these hosts.
    ///
    /// # Examples
    ///
    /// See [`Link`].
    pub fn loss(self, probability: f64) -> Self {
        self.change(|link| link.loss = probability)
    }

    /// As [`Current::duplication`], for these hosts.
    ///
    /// # Examples
    ///
    /// As [`loss`](Self::loss).
    pub fn duplication(self, probability: f64) -> Self {
        self.change(|link| link.duplication = probability)
    }

    fn change(self, change: impl Fn(&mut Quality)) -> Self {
        let (one, other) = self.ends;
        network::set_link(Some((one, other)), &change);
        network::set_link(Some((other, one)), &change);
        self
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.ends).finish()
    }
}

fn set_latency(range: Range<Duration>) -> impl Fn(&mut Quality) {
    move |link| link.latency = range.clone()
}

/// Spawns what the host runs.
#[track_caller]
fn begin(host: u32) {
    let start = hosts::start_of(host).unwrap_or_else(|| panic!("a client runs once, and cannot be restarted"));
    network::bring_up(host);
    // In a task of the host from its first line on: sockets that `start` makes are the host's.
    let task = spawn_local(async move { start().await });
    hosts::note_started(host, task.abort_handle());
}
