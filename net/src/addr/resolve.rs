//! The futures that turn a `ToSocketAddrs` into addresses, and those that use the addresses.
//!
//! `Resolve` is a part of every future that takes a host. `TryEach` is a `bind` or `connect` that is one call and does
//! not wait; a TCP connect waits, and is in `tcp`.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::sealed::{Target, ToTarget};
use super::{Addrs, Found, invalid};
use crate::error::failed;
use crate::job::{self, Job, JobHandle};
use crate::source::{CallSite, Site};
use crate::sys;

/// Future of [`lookup_host`](crate::lookup_host): resolves to `io::Result<Addrs>`, the addresses of a host.
#[must_use = "futures do nothing unless awaited"]
pub struct LookupHost(Resolve);

/// Tries the addresses of a host until an operation such as `bind` or `connect` succeeds with one.
#[must_use = "futures do nothing unless awaited"]
pub(crate) struct TryEach<'a, S, R> {
    resolve: Resolve,
    operation: &'static str,
    on: &'a S,
    attempt: fn(&S, SocketAddr) -> io::Result<R>,
}

/// A host on its way to addresses. Nothing is looked up before the first poll.
pub(crate) struct Resolve {
    state: State,
    pub(crate) call_site: CallSite,
}

enum State {
    Start(Target),
    /// The host and the port, for the error.
    Looking(JobHandle<Addrs>, String),
    Done,
}

impl Resolve {
    #[track_caller]
    pub(crate) fn new(host: &impl ToTarget, site: &'static Site) -> Resolve {
        Resolve { state: State::Start(host.to_target()), call_site: CallSite::here(site) }
    }

    /// If the lookup is a part of another operation, its error names that and the host.
    ///
    /// # Panics
    ///
    /// Panics outside a mini runtime if the host is a name, and if it is polled again after it was ready.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, operation: Option<&'static str>) -> Poll<io::Result<Addrs>> {
        let named = |result: io::Result<Addrs>, name: String| match operation {
            Some(operation) => result.map_err(failed(operation, name)),
            None => result,
        };
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Start(Target::Known(addrs)) => return Poll::Ready(Ok(addrs)),
                State::Start(Target::Wrong(e)) => return Poll::Ready(Err(e)),
                State::Start(Target::Name { host, port }) => {
                    let name = format!("{host}:{port}");
                    if let Some(found) = sys::look_up(&host) {
                        let found = found.map(|ip| Addrs(Found::Many(vec![SocketAddr::new(ip, port)].into_iter())));
                        return Poll::Ready(named(found, name));
                    }
                    let pool = job::pool(&self.call_site);
                    self.state =
                        State::Looking(JobHandle::start(&pool, move |job| look_up_for(job, &host, port)), name);
                }
                State::Looking(mut handle, name) => {
                    let Poll::Ready(found) = handle.poll(cx, &self.call_site) else {
                        self.state = State::Looking(handle, name);
                        return Poll::Pending;
                    };
                    return Poll::Ready(named(found, name));
                }
                State::Done => panic!("a lookup was polled again after it was done"),
            }
        }
    }
}

impl LookupHost {
    pub(super) fn new(resolve: Resolve) -> LookupHost {
        LookupHost(resolve)
    }
}

impl<R> TryEach<'static, (), R> {
    /// For an operation that needs nothing but the address.
    #[track_caller]
    pub(crate) fn new(
        host: &impl ToTarget,
        site: &'static Site,
        operation: &'static str,
        attempt: fn(&(), SocketAddr) -> io::Result<R>,
    ) -> TryEach<'static, (), R> {
        TryEach { resolve: Resolve::new(host, site), operation, on: &(), attempt }
    }
}

impl<'a, S, R> TryEach<'a, S, R> {
    #[track_caller]
    pub(crate) fn with(
        on: &'a S,
        host: &impl ToTarget,
        site: &'static Site,
        operation: &'static str,
        attempt: fn(&S, SocketAddr) -> io::Result<R>,
    ) -> TryEach<'a, S, R> {
        TryEach { resolve: Resolve::new(host, site), operation, on, attempt }
    }
}

impl Future for LookupHost {
    type Output = io::Result<Addrs>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Addrs>> {
        ready!(mini_context::check_budget(cx, &*self));
        mini_context::spend_if_ready(self.get_mut().0.poll(cx, None))
    }
}

impl<S, R> Future for TryEach<'_, S, R> {
    type Output = io::Result<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        ready!(mini_context::check_budget(cx, &*self));
        let this = self.get_mut();
        let addrs = ready!(this.resolve.poll(cx, Some(this.operation)));
        mini_context::spend_call();
        let addrs = addrs?;
        let mut last_error = no_address();
        for addr in addrs {
            match (this.attempt)(this.on, addr) {
                Err(e) => last_error = failed(this.operation, addr)(this.resolve.call_site.located(e)),
                done => return Poll::Ready(done),
            }
        }
        Poll::Ready(Err(last_error))
    }
}

/// The error when a host has no address to try.
pub(crate) fn no_address() -> io::Error {
    invalid("the name has no address")
}

/// The lookup may have waited for a thread for longer than anybody wanted it.
fn look_up_for(job: &Job<Addrs>, host: &str, port: u16) -> io::Result<Addrs> {
    if job.is_wanted() { look_up(host, port) } else { Err(io::ErrorKind::Interrupted.into()) }
}

fn look_up(host: &str, port: u16) -> io::Result<Addrs> {
    Ok(Addrs(Found::Many((host, port).to_socket_addrs()?)))
}

impl fmt::Debug for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Start(target) => target.fmt(f),
            State::Looking(..) => f.write_str("Looking"),
            State::Done => f.write_str("Done"),
        }
    }
}

impl fmt::Debug for LookupHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LookupHost").field(&self.0).finish()
    }
}

impl<S, R> TryEach<'_, S, R> {
    /// Shows what is looked up, under the name that users know it by.
    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(name).field(&self.resolve).finish()
    }
}
