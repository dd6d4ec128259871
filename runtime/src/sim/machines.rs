//! The hosts of a simulation: a test adds, crashes, restarts and pauses them.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use mini_context::sim::inject;
use mini_net::sim as network;

use super::current::Current;
use super::names::{Names, number, numbers};
use super::{Outcome, disk, hosts, sites};
use crate::task::{JoinHandle, group, spawn_local};

/// Hosts. The test itself runs on a host of the name `test`.
impl Current {
    /// Adds a host, which runs what `start` makes, at once and again after each [`restart`](Self::restart).
    ///
    /// Its name is known to [`lookup_host`](crate::net::lookup_host) and to all that connects by name. Tasks that are
    /// spawned by it belong to the host. If its future ends with an error, or panics, the simulation fails at once.
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
    /// If there is a host of that name, or if none can have it: an IP address, `localhost`, one with a colon or without
    /// a character.
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

    /// Adds a host that runs `future` once, and returns the handle of its task. A test that is over before the task is
    /// does not wait for it: await the handle. If that was dropped, the simulation fails where the task panics or ends
    /// with an error.
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
    /// If there is a host of that name, or if none can have it: an IP address, `localhost`, one with a colon or without
    /// a character.
    #[must_use = "a test does not wait for a client: await its handle"]
    #[track_caller]
    pub fn client<F: Future + 'static>(&self, name: &str, future: F) -> JoinHandle<F::Output> {
        let host = self.add(name);
        let handle = spawn_local(future);
        hosts::note_started(host, handle.abort_handle());
        handle
    }

    #[track_caller]
    fn add(&self, name: &str) -> u32 {
        assert!(network::host(name).is_none(), "the simulation already has a host named `{name}`");
        let has_other_meaning = name == "localhost" || name.contains(':') || name.parse::<IpAddr>().is_ok();
        assert!(!name.is_empty() && !has_other_meaning, "a host cannot be named `{name}`: choose another name");
        hosts::begin(self.core());
        network::add_host(name)
    }

    /// Crashes hosts: their tasks are dropped and their sockets closed. Connected peers receive a reset, if it reaches
    /// them. File data that were not synced may be lost.
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

    /// Cuts the power of hosts: like [`crash`](Self::crash), but peers receive no reset. They wait, or find out by
    /// themselves.
    ///
    /// # Examples
    ///
    /// See [`crash`](Self::crash).
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`crash`](Self::crash).
    #[track_caller]
    pub fn power_off(&self, names: impl Names) {
        self.take_down(names, "power-off", false);
    }

    #[track_caller]
    fn take_down(&self, names: impl Names, what: &str, resets: bool) {
        for host in numbers(names) {
            assert!(host != 0, "the host of the test cannot be taken down");
            if network::is_up(host) && inject(|| format!("{what} of {}", network::host_name(host))) {
                network::take_down(host, resets);
                hosts::kill(host, self.core());
                disk::crash(host);
            }
        }
    }

    /// Starts hosts that have crashed, or whose future has ended. Hosts that are up stay unchanged.
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

    /// Returns `true` if the host is up, and its program has not ended.
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
        let host = number(name);
        network::is_up(host) && !hosts::is_over(host)
    }

    /// Pauses hosts: their tasks do not run until the hosts are [resumed](Self::resume), while time passes, as in a
    /// process that is stopped, or on a machine that is too busy. Data sent to the host arrive.
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
            assert!(host != 0, "the host of the test cannot be paused: no task could resume it");
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

    /// Makes the clocks of these hosts faster from now on, by `ppm` parts per million, or slower if it is negative.
    /// This affects the result of [`Instant::now`](crate::time::Instant::now) and the duration of a
    /// [`sleep`](crate::time::sleep) there. The clocks of real computers are wrong by up to about 100 ppm. A timer that
    /// has been started already is not affected.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         let nap = || mini::time::sleep(Duration::from_secs(1000));
    ///         let fast = sim.client("fast", async move { nap().await });
    ///         sim.skew("fast", 100_000);
    ///         fast.await.unwrap();
    ///         assert_eq!(sim.elapsed().as_secs(), 909);
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If there is no such host, or if the clock would stop or go backwards: at -1,000,000 or less.
    #[track_caller]
    pub fn skew(&self, names: impl Names, ppm: i32) {
        let fault = if ppm == -1_000_000 { "would stop" } else { "would go backwards" };
        assert!(ppm > -1_000_000, "a clock that is faster by {ppm} parts of a million {fault}");
        for host in numbers(names) {
            if inject(|| format!("skew of {} by {ppm} ppm", network::host_name(host))) {
                mini_context::sim::skew(host, ppm);
            }
        }
    }

    /// Makes timers late from now on, with that probability, each time by up to `most`, as on a busy machine. Timers
    /// are exact by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// mini::sim::Sim::new(7)
    ///     .run(async {
    ///         let sim = mini::sim::current();
    ///         sim.late_timers(1.0, Duration::from_millis(5));
    ///         mini::time::sleep(Duration::from_millis(10)).await;
    ///         assert!(sim.elapsed() > Duration::from_millis(10) && sim.elapsed() <= Duration::from_millis(15));
    ///     })
    ///     .unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If `probability` is not a number from 0 to 1.
    #[track_caller]
    pub fn late_timers(&self, probability: f64, most: Duration) {
        sites::check(probability);
        mini_context::sim::make_timers_late(self.seed(), probability, most);
    }

    /// Returns the address of a host.
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

/// Spawns what the host runs.
#[track_caller]
fn begin(host: u32) {
    let Some(start) = hosts::start_of(host) else { panic!("a client runs once, and cannot be restarted") };
    group::simulated::forget(Some(host));
    network::bring_up(host);
    // In a task of the host from its first line on: sockets that `start` makes are the host's.
    let task = spawn_local(async move { start().await });
    hosts::note_started(host, task.abort_handle());
}
