//! The network of a simulation: TCP and UDP between hosts that are tasks of one thread, in virtual time.
//!
//! It is below the readiness layer. Sockets run the code of production, in mini and in everything built on it; only
//! calls that would go to the kernel come here (`sys/simulated.rs`). The descriptor of a simulated socket is a real
//! one, never bound nor connected: it keeps the options.
//!
//! Unix sockets and pipes are the system's in a simulation too: they join tasks of one process, nothing is lost, and
//! what is ready does not depend on time.
//!
//! Used by the simulation of the runtime: it calls [`enter`], [`advance`] before every step, and [`leave`]. All state
//! is in the thread on which the simulation runs.
//!
//! # Rejected
//!
//! - Pairs of real sockets with a task in between that delays the bytes: readiness would be the kernel's, but ports,
//!   refusals, resets and full buffers would not, and each byte would pass the kernel four times.
//! - A trait for sockets, or another crate that is swapped in: programs would have to be written for it.

mod event;
mod flow;
mod host;
mod link;
mod network;
mod socket;
mod sockets;
mod strays;
mod tcp;
mod udp;

use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub(crate) use event::Id;
pub(crate) use host::Protocol;
pub use link::Quality;
pub(crate) use network::{Network, Options};
pub(crate) use socket::Room;
pub(crate) use strays::Strays;

use socket2::SockAddr;

use crate::reactor::Reactor;

thread_local! {
    static NETWORK: RefCell<Option<Network>> = const { RefCell::new(None) };
}

/// The number of simulations that this process has begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Begins a simulation on this thread, with one host: that of the test, number 0.
pub fn enter(seed: u64) {
    NETWORK.set(Some(Network::new(seed, BEGUN.fetch_add(1, Relaxed))));
}

/// Ends the simulation on this thread.
pub fn leave() {
    drop(NETWORK.take());
}

/// Runs the events that are due, and wakes the tasks that wait for them.
pub fn advance(reactor: &Reactor) {
    let reports = with(|network| {
        network.advance();
        network.take_reports()
    });
    if let Some(reports) = reports.filter(|reports| !reports.is_empty()) {
        reactor.deliver(reports);
    }
}

/// Returns the time of the next event, counted from the beginning of the simulation.
pub fn next_time() -> Option<Duration> {
    with(|network| network.events.next_time()).flatten()
}

/// Adds a host, and returns its number.
pub fn add_host(name: &str) -> u32 {
    changed(|network| {
        let number = network.hosts.len() as u32;
        network.hosts.push(host::Host::new(number, name));
        number
    })
}

/// Returns the number of a host.
pub fn host(name: &str) -> Option<u32> {
    changed(|network| network.hosts.iter().position(|host| host.name == name)).map(|at| at as u32)
}

/// Returns the name of a host.
pub fn host_name(host: u32) -> String {
    changed(|network| network.hosts[host as usize].name.clone())
}

/// Returns the names of all hosts, in the order of their numbers.
pub fn host_names() -> Vec<String> {
    changed(|network| network.hosts.iter().map(|host| host.name.clone()).collect())
}

/// Returns the address of a host.
pub fn host_ip(host: u32) -> IpAddr {
    changed(|network| network.hosts[host as usize].v4().into())
}

/// Returns `true` if the host is up.
pub fn is_up(host: u32) -> bool {
    changed(|network| network.hosts[host as usize].is_up)
}

/// Takes a host down. With `resets` its kernel closes its connections; otherwise its peers notice nothing.
pub fn take_down(host: u32, resets: bool) {
    changed(|network| network.take_down(host, resets));
}

/// Brings a host up again, without its sockets.
pub fn bring_up(host: u32) {
    changed(|network| network.hosts[host as usize].is_up = true);
}

/// Changes the link from one host to the other, or with `None` all links.
pub fn set_link(ends: Option<(u32, u32)>, change: impl Fn(&mut Quality)) {
    changed(|network| network.links.set(ends, change));
}

/// Drops all packets from one host to the other.
pub fn cut(from: u32, to: u32) {
    changed(|network| {
        network.open_link(from, to);
        network.links.cut(from, to);
        network.probe_all(|host, peer_host| (host, peer_host) == (from, to) || (host, peer_host) == (to, from));
    });
}

/// Holds all packets from one host to the other until the link is opened.
pub fn hold(from: u32, to: u32) {
    changed(|network| network.links.begin_hold(from, to));
}

/// Ends a [`hold`].
pub fn release(from: u32, to: u32) {
    changed(|network| {
        for what in network.links.end_hold(from, to) {
            network.later(Duration::ZERO, what);
        }
    });
}

/// Opens a link that was cut or held.
pub fn open(from: u32, to: u32) {
    changed(|network| network.open_link(from, to));
}

/// Returns the links that are not open.
pub fn blocked() -> Vec<(u32, u32)> {
    changed(|network| network.links.blocked())
}

/// Enables occasional short writes, split segments and spurious wake-ups. They are on by default.
pub fn set_rough(is_rough: bool) {
    changed(|network| network.is_rough = is_rough);
}

impl Network {
    fn open_link(&mut self, from: u32, to: u32) {
        for what in self.links.open(from, to) {
            self.later(Duration::ZERO, what);
        }
    }
}

fn changed<R>(f: impl FnOnce(&mut Network) -> R) -> R {
    with(f).expect("a simulation runs on this thread")
}

/// `None` if no simulation runs on this thread.
pub(crate) fn with<R>(f: impl FnOnce(&mut Network) -> R) -> Option<R> {
    let call = |network: &mut Network| {
        network.close_strays();
        f(network)
    };
    NETWORK.try_with(|network| network.borrow_mut().as_mut().map(call)).ok().flatten()
}

/// Returns the prefix of the names of Unix sockets on the host whose task runs.
pub(crate) fn prefix() -> Vec<u8> {
    let number = with(|network| network.number).unwrap_or_default();
    format!("mini-sim {} {number} {} ", std::process::id(), mini_context::sim::host()).into_bytes()
}

/// A Unix socket is bound to this address, on the host whose task runs.
pub(crate) fn note_path(addr: &SockAddr) {
    if let Some(path) = addr.as_pathname() {
        with(|network| network.paths.insert((mini_context::sim::host(), path.to_owned())));
    }
}

/// Returns `true` if there has been a Unix socket at the address, and for every abstract name, which can't be checked.
pub(crate) fn knows_path(addr: &SockAddr) -> bool {
    let Some(path) = addr.as_pathname() else { return true };
    with(|network| network.paths.contains(&(mini_context::sim::host(), path.to_owned()))).unwrap_or_default()
}

/// For what a simulation has no model of.
pub(crate) fn not_simulated(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, text)
}

fn errno(number: libc::c_int) -> io::Error {
    io::Error::from_raw_os_error(number)
}
