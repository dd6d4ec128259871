//! The calls of `socket`, in a simulation: those on sockets of TCP and UDP go to `sim`, all others to the system.
//!
//! Compiled with the feature `sim` alone. Outside of a simulation each call costs one branch.
//!
//! Each host of a simulation has Unix sockets of its own, though the paths are the system's: an address becomes an
//! abstract name (unix(7)) that begins with the numbers of the simulation and the host. So simulations that run at the
//! same time do not meet, and nothing is left in the file system.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use libc::c_int;
use mini_context::sim::is_simulated;
use socket2::{Domain, MaybeUninitSlice, SockAddr, SockRef, Socket, Type};

use super::backend;
use super::system;
use super::{Custody, Events, Token};
use crate::ready::Ready;
use crate::sim::{self, Id, Network, Options, Protocol, Room, Strays, not_simulated};

pub(crate) use system::{
    MAX_SLICES, NOW, PEEK, count_empty, for_kernel, give_away, pair, read, send_message, send_now, slices_for_kernel,
    total,
};

/// Calls `f` with the simulated socket of `fd`, if it has one.
#[inline]
fn on<R>(fd: BorrowedFd<'_>, f: impl FnOnce(&mut Network, Id) -> R) -> Option<R> {
    if is_simulated() { on_simulated(fd.as_raw_fd(), f) } else { None }
}

#[cold]
fn on_simulated<R>(fd: RawFd, f: impl FnOnce(&mut Network, Id) -> R) -> Option<R> {
    sim::with(|network| network.id(fd).map(|id| f(network, id))).flatten()
}

pub(crate) fn open(domain: Domain, kind: Type) -> io::Result<Socket> {
    let socket = system::open(domain, kind)?;
    if is_simulated() && domain != Domain::UNIX {
        let protocol = if kind == Type::STREAM { Protocol::Tcp } else { Protocol::Udp };
        let (fd, is_v6) = (socket.as_raw_fd(), domain == Domain::IPV6);
        sim::with(|network| network.open(fd, is_v6, protocol, || room(&SockRef::from(&socket)))).transpose()?;
    }
    Ok(socket)
}

fn room(socket: &SockRef<'_>) -> io::Result<Room> {
    Ok(Room { send: socket.send_buffer_size()?, receive: socket.recv_buffer_size()? })
}

pub(crate) fn set_send_buffer_size(socket: &Socket, size: usize) -> io::Result<()> {
    system::set_send_buffer_size(socket, size)?;
    on(socket.as_fd(), |network, id| network.socket(id).room.send = doubled(size));
    Ok(())
}

pub(crate) fn set_recv_buffer_size(socket: &Socket, size: usize) -> io::Result<()> {
    system::set_recv_buffer_size(socket, size)?;
    on(socket.as_fd(), |network, id| network.socket(id).room.receive = doubled(size));
    Ok(())
}

/// As Linux does (socket(7)), but without a most: that differs from system to system.
fn doubled(size: usize) -> usize {
    size.saturating_mul(2)
}

pub(crate) fn bind(fd: BorrowedFd<'_>, to: &SockAddr) -> io::Result<()> {
    let socket = SockRef::from(&fd);
    let bound = on(fd, |network, id| {
        let addr = inet(to)?;
        let options = Options {
            reuses_address: socket.reuse_address()?,
            reuses_port: socket.reuse_port()?,
            only_v6: addr.is_ipv6() && socket.only_v6()?,
        };
        network.bind(id, addr, options)
    });
    bound.unwrap_or_else(|| system::bind(fd, &own_name(to)?).inspect(|()| sim::note_path(to)))
}

pub(crate) fn listen(fd: BorrowedFd<'_>, backlog: u32) -> io::Result<()> {
    let listened = on(fd, |network, id| network.listen(id, backlog as usize, room(&SockRef::from(&fd))?));
    listened.unwrap_or_else(|| system::listen(fd, backlog))
}

pub(crate) fn connect(socket: &Socket, to: &SockAddr) -> io::Result<bool> {
    let begun = on(socket.as_fd(), |network, id| network.connect_stream(id, inet(to)?, room(&SockRef::from(socket))?));
    begun
        .map(|begun| begun.map(|()| false))
        .unwrap_or_else(|| system::connect(socket, &own_name(to)?).map_err(|error| refused(error, to)))
}

pub(crate) fn connected(fd: BorrowedFd<'_>) -> io::Result<()> {
    on(fd, Network::connected).unwrap_or_else(|| system::connected(fd))
}

pub(crate) fn connect_datagrams(fd: BorrowedFd<'_>, to: &SockAddr) -> io::Result<()> {
    let connected = on(fd, |network, id| network.connect_datagrams(id, inet(to)?));
    connected.unwrap_or_else(|| system::connect_datagrams(fd, &own_name(to)?).map_err(|error| refused(error, to)))
}

pub(crate) fn accept(fd: BorrowedFd<'_>) -> io::Result<(OwnedFd, SockAddr)> {
    let accepted = on(fd, |network, id| {
        let (connection, from) = network.accept(id)?;
        let made = system::open(if from.is_ipv6() { Domain::IPV6 } else { Domain::IPV4 }, Type::STREAM);
        let made = made.inspect_err(|_| network.put_back(id, connection))?;
        network.adopt(connection, made.as_raw_fd());
        Ok((made.into(), from.into()))
    });
    accepted.unwrap_or_else(|| system::accept(fd).map(|(made, from)| (made, shown(from))))
}

pub(crate) fn local_addr(fd: BorrowedFd<'_>) -> io::Result<SockAddr> {
    let local = on(fd, |network, id| Ok(network.local_addr(id).into()));
    local.unwrap_or_else(|| system::local_addr(fd).map(shown))
}

pub(crate) fn peer_addr(fd: BorrowedFd<'_>) -> io::Result<SockAddr> {
    let peer = on(fd, |network, id| network.peer_addr(id).map(SockAddr::from));
    peer.unwrap_or_else(|| system::peer_addr(fd).map(shown))
}

pub(crate) fn take_error(fd: BorrowedFd<'_>) -> io::Result<Option<io::Error>> {
    on(fd, |network, id| Ok(network.take_error(id))).unwrap_or_else(|| system::take_error(fd))
}

pub(crate) fn shutdown(fd: BorrowedFd<'_>, how: Shutdown) -> io::Result<()> {
    on(fd, |network, id| network.shutdown(id, how)).unwrap_or_else(|| system::shutdown(fd, how))
}

/// A function that fills the buffers with the bytes that it is given, from where it was before, and says how many
/// fitted.
fn filler<'a>(bufs: impl Iterator<Item = &'a mut [MaybeUninit<u8>]>) -> impl FnMut(&[u8]) -> usize {
    let (mut bufs, mut rest): (_, &mut [_]) = (bufs.fuse(), &mut []);
    move |mut bytes| {
        let before = bytes.len();
        while !bytes.is_empty() {
            if rest.is_empty() {
                match bufs.next() {
                    Some(buf) => rest = buf,
                    None => break,
                }
            }
            let count = rest.len().min(bytes.len());
            let (now, later) = std::mem::take(&mut rest).split_at_mut(count);
            now.iter_mut().zip(bytes).for_each(|(to, byte)| _ = to.write(*byte));
            (rest, bytes) = (later, &bytes[count..]);
        }
        before - bytes.len()
    }
}

pub(crate) fn recv(fd: BorrowedFd<'_>, buf: &mut [MaybeUninit<u8>], flags: c_int) -> io::Result<usize> {
    match on(fd, |network, id| network.recv_any(id, &mut filler(std::iter::once(&mut *buf)), flags & PEEK != 0)) {
        Some(received) => received.map(|(count, _)| count),
        None => system::recv(fd, buf, flags),
    }
}

pub(crate) fn recv_from(fd: BorrowedFd<'_>, buf: &mut [u8], flags: c_int) -> io::Result<(usize, SockAddr)> {
    let received =
        on(fd, |network, id| network.recv_any(id, &mut filler(std::iter::once(for_kernel(buf))), flags & PEEK != 0));
    match received {
        Some(received) => received.map(|(count, from)| (count, from.into())),
        None => system::recv_from(fd, buf, flags).map(|(count, from)| (count, shown(from))),
    }
}

pub(crate) fn recv_message(
    fd: BorrowedFd<'_>,
    bufs: &mut [MaybeUninitSlice<'_>],
    control: &mut [u8],
    flags: c_int,
) -> io::Result<(usize, usize, bool)> {
    let received = on(fd, |network, id| {
        network.recv_any(id, &mut filler(bufs.iter_mut().map(|buf| &mut **buf)), flags & PEEK != 0)
    });
    match received {
        Some(received) => received.map(|(count, _)| (count, 0, false)),
        None => system::recv_message(fd, bufs, control, flags),
    }
}

pub(crate) fn send(fd: BorrowedFd<'_>, buf: &[u8]) -> io::Result<usize> {
    on(fd, |network, id| network.send_any(id, &mut std::iter::once(buf))).unwrap_or_else(|| system::send(fd, buf))
}

pub(crate) fn send_vectored(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    let sent = on(fd, |network, id| network.send_any(id, &mut bufs.iter().take(MAX_SLICES).map(|buf| &**buf)));
    sent.unwrap_or_else(|| system::send_vectored(fd, bufs))
}

pub(crate) fn send_to(fd: BorrowedFd<'_>, buf: &[u8], to: &SockAddr) -> io::Result<usize> {
    let sent = on(fd, |network, id| network.send_datagram(id, buf.to_vec(), Some(inet(to)?)));
    sent.unwrap_or_else(|| system::send_to(fd, buf, &own_name(to)?).map_err(|error| refused(error, to)))
}

pub(crate) fn set_linger(fd: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<()> {
    on(fd, |network, id| network.socket(id).resets = limit == Some(Duration::ZERO));
    system::set_linger(fd, limit)
}

/// Not from or to a socket that the system does not know.
#[cfg(feature = "futures-io")]
pub(crate) fn can_splice() -> bool {
    !is_simulated() && super::splice::can_splice()
}

/// The address of a host of the simulation.
pub(crate) fn look_up(name: &str) -> Option<io::Result<IpAddr>> {
    if !is_simulated() {
        return None;
    }
    if name == "localhost" {
        return Some(Ok(IpAddr::from([127, 0, 0, 1])));
    }
    let known = sim::host(name).map(sim::host_ip);
    Some(known.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no host of the simulation has that name")))
}

/// Refuses what there is no model of, if the socket is simulated. `call` is the type and the method that was called.
#[track_caller]
pub(crate) fn refuse_simulated(fd: BorrowedFd<'_>, call: (&str, &str), text: &str) -> io::Result<()> {
    match on(fd, |_, _| ()) {
        Some(()) => Err(located(not_simulated(text), call, Location::caller())),
        None => Ok(()),
    }
}

/// Refuses a socket of TCP or UDP that is the system's, in a simulation: its bytes would come from outside, at times
/// that are not the seed's.
#[track_caller]
pub(crate) fn refuse_real(fd: BorrowedFd<'_>, call: (&str, &str)) -> io::Result<()> {
    if !is_simulated() || !system::local_addr(fd).is_ok_and(|addr| addr.as_socket().is_some()) {
        return Ok(());
    }
    let text = "a socket of the system is not part of the simulated network: use one that mini has made";
    Err(located(not_simulated(text), call, Location::caller()))
}

/// An error about something that is not simulated also names the call, and its line.
#[inline]
pub(crate) fn located(error: io::Error, (owner, method): (&str, &str), at: &Location<'_>) -> io::Error {
    let is_refusal = is_simulated() && error.kind() == io::ErrorKind::Unsupported;
    if !is_refusal || error.raw_os_error().is_some() {
        return error;
    }
    not_simulated(&format!("`{owner}::{method}`, called at {at}: {error}"))
}

/// How many of the sockets in the reactor are simulated.
pub(crate) fn registered() -> usize {
    if is_simulated() { sim::with(|network| network.registered).unwrap_or_default() } else { 0 }
}

fn inet(addr: &SockAddr) -> io::Result<SocketAddr> {
    addr.as_socket().ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
}

/// The address of a Unix socket, as only this host of this simulation knows it.
fn own_name(addr: &SockAddr) -> io::Result<SockAddr> {
    match (is_simulated().then(sim::prefix), name_of(addr)) {
        (Some(prefix), Some(name)) => abstract_name(&[&prefix, &name[..]].concat()),
        _ => Ok(addr.clone()),
    }
}

/// A path at which there has never been a socket does not refuse, but is not there.
fn refused(error: io::Error, to: &SockAddr) -> io::Error {
    let is_missing = is_simulated() && error.kind() == io::ErrorKind::ConnectionRefused && !sim::knows_path(to);
    if is_missing { io::Error::from_raw_os_error(libc::ENOENT) } else { error }
}

/// As the program knows it.
fn shown(addr: SockAddr) -> SockAddr {
    let Some(prefix) = is_simulated().then(sim::prefix) else { return addr };
    let name = addr.as_abstract_namespace().and_then(|name| name.strip_prefix(&prefix[..]));
    let plain = name.map(|name| match name {
        [0, name @ ..] => abstract_name(name),
        path => SockAddr::unix(std::ffi::OsStr::from_bytes(path)),
    });
    plain.and_then(Result::ok).unwrap_or(addr)
}

/// The path of a Unix socket; of one with an abstract name, that behind a zero byte.
fn name_of(addr: &SockAddr) -> Option<Vec<u8>> {
    let path = addr.as_pathname().map(|path| path.as_os_str().as_bytes().to_vec());
    path.or_else(|| addr.as_abstract_namespace().map(|name| [b"\0", name].concat()))
}

fn abstract_name(name: &[u8]) -> io::Result<SockAddr> {
    SockAddr::unix(std::ffi::OsStr::from_bytes(&[b"\0", name].concat()))
}

/// Tells the simulation that a descriptor is closed.
#[derive(Debug)]
pub(crate) struct Closer(Option<(RawFd, Arc<Strays>)>);

impl Closer {
    pub(crate) fn new(fd: BorrowedFd<'_>, custody: Custody) -> Self {
        let open = |network: &mut Network, _| (fd.as_raw_fd(), Arc::clone(&network.strays));
        Self(if custody == Custody::Ours { on(fd, open) } else { None })
    }

    /// It is not closed, but goes elsewhere.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        let Some((fd, strays)) = &self.0 else { return };
        let is_closed = sim::with(|network| {
            let is_own = Arc::ptr_eq(&network.strays, strays);
            if is_own {
                network.close(*fd);
            }
            is_own
        });
        if is_closed != Some(true) {
            strays.note(*fd); // in another thread, or after the simulation
        }
    }
}

/// The system's, and beside it the simulated sockets.
pub(crate) struct Poller(backend::Poller);

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        backend::Poller::new().map(Self)
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: Token, custody: Custody) -> io::Result<Ready> {
        match on(fd, |network, id| (custody == Custody::Ours).then(|| network.register(id, token))) {
            Some(Some(ready)) => Ok(ready),
            Some(None) => Err(not_simulated("a simulated socket has no descriptor of the system for an AsyncFd")),
            None => self.0.add(fd, token, custody),
        }
    }

    pub(crate) fn remove(&self, fd: RawFd, token: Token, custody: Custody) {
        let is_simulated = is_simulated() && sim::with(|network| network.unregister(fd, token)).unwrap_or_default();
        if !is_simulated {
            self.0.remove(fd, token, custody);
        }
    }

    pub(crate) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        self.0.wait(events, timeout)
    }

    pub(crate) fn notify(&self) {
        self.0.notify();
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
