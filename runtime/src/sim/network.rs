//! The network of a simulation: a test makes links slow, lossy, cut or waiting.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use mini_context::sim::inject;
use mini_net::sim as network;
use mini_net::sim::Quality;

use super::current::Current;
use super::names::{Names, number, pairs};
use super::sites;

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

/// For the text of a fault.
fn shown(pairs: &[(u32, u32)], arrow: &str) -> String {
    let pair = |(one, other): &(u32, u32)| format!("{}{arrow}{}", network::host_name(*one), network::host_name(*other));
    pairs.iter().map(pair).collect::<Vec<_>>().join(", ")
}

/// The network between them. Within a host nothing is lost, and nothing takes time.
impl Current {
    /// Sets the latency of a packet between any two hosts: each duration in the range is equally likely. 0.1 to 2 ms by
    /// default.
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
    ///
    /// # Panics
    ///
    /// If the range ends before it begins. One that ends where it begins is that time.
    #[track_caller]
    pub fn latency(&self, range: Range<Duration>) -> &Self {
        network::set_link(None, set_latency(range));
        self
    }

    /// Sets the probability that a packet is lost: 0 by default. For a TCP connection a loss is a delay.
    ///
    /// # Examples
    ///
    /// See [`latency`](Self::latency).
    ///
    /// # Panics
    ///
    /// If `probability` is not a number from 0 to 1.
    #[track_caller]
    pub fn loss(&self, probability: f64) -> &Self {
        sites::check(probability);
        network::set_link(None, |link| link.loss = probability);
        self
    }

    /// Sets the probability that a datagram arrives twice: 0 by default.
    ///
    /// # Examples
    ///
    /// ```
    /// mini::sim::Sim::new(7).run(async { mini::sim::current().duplication(0.1).loss(0.1); }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If `probability` is not a number from 0 to 1.
    #[track_caller]
    pub fn duplication(&self, probability: f64) -> &Self {
        sites::check(probability);
        network::set_link(None, |link| link.duplication = probability);
        self
    }

    /// Makes the network rough, as it is by default, or not. In a rough network, now and then a write takes fewer bytes
    /// than it could, sent data arrive in two parts, or a task is woken spuriously.
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

    /// Returns the links between two hosts, in both directions.
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

    /// Cuts the links between each of the first hosts and each of the second: sent data are lost silently.
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
    /// See [`partition`](Self::partition).
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

    /// Holds the data sent between these hosts until they are [released](Self::release); nothing is lost. A link that
    /// is cut stays cut.
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
    /// Connections recover at their next retransmission, as with real TCP: that may take as long as the partition has
    /// lasted.
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
    /// See [`repair`](Self::repair).
    pub fn repair_all(&self) {
        for (from, to) in network::blocked() {
            network::open(from, to);
        }
    }

    /// Returns the links that are cut or held, by the names of their ends.
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
    /// Sets the latency of packets between these hosts; see [`Current::latency`].
    ///
    /// # Examples
    ///
    /// See [`Link`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Current::latency`].
    #[track_caller]
    pub fn latency(self, range: Range<Duration>) -> Self {
        self.change(set_latency(range))
    }

    /// Sets the probability that a packet between these hosts is lost; see [`Current::loss`].
    ///
    /// # Examples
    ///
    /// See [`Link`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Current::loss`].
    #[track_caller]
    pub fn loss(self, probability: f64) -> Self {
        sites::check(probability);
        self.change(|link| link.loss = probability)
    }

    /// Sets the probability that a datagram between these hosts arrives twice; see [`Current::duplication`].
    ///
    /// # Examples
    ///
    /// See [`loss`](Self::loss).
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Current::duplication`].
    #[track_caller]
    pub fn duplication(self, probability: f64) -> Self {
        sites::check(probability);
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

#[track_caller]
fn set_latency(range: Range<Duration>) -> impl Fn(&mut Quality) {
    assert!(range.start <= range.end, "{range:?} is not a range of latencies: it ends before it begins");
    move |link| link.latency = range.clone()
}
