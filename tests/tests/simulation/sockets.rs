//! What calls on sockets answer in a simulation: the same as those of Linux.

#![cfg(target_os = "linux")]

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::time::Duration;

use mini::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use mini::sim::Sim;
use mini::time::sleep;
use mini_tests::net_support::raw_os_error;
use rustix::io::Errno;
use rustix::net::sockopt::set_ipv6_v6only;

/// Runs `body` outside of a simulation, and under 20 seeds.
fn same<T: PartialEq + Debug>(body: impl AsyncFn() -> T) {
    let real = mini::block_on(body());
    for seed in 0..20 {
        assert_eq!(Sim::new(seed).run(body()).unwrap(), real, "simulated (left) and not, seed {seed}");
    }
}

fn number<T: Debug>(result: io::Result<T>) -> Result<T, Option<Errno>> {
    result.map_err(|error| raw_os_error(&error).map(Errno::from_raw_os_error))
}

fn ip(addr: io::Result<SocketAddr>) -> Result<IpAddr, Option<Errno>> {
    number(addr).map(|addr| addr.ip())
}

/// Sockets of IPv6 that are bound in each way; with `true` they are for that alone.
const LOCALS: [(Ipv6Addr, bool); 4] = [
    (Ipv6Addr::UNSPECIFIED, false),
    (Ipv6Addr::UNSPECIFIED, true),
    (Ipv6Addr::LOCALHOST, false),
    (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), false),
];

/// The receivers, and what leads there.
const TARGETS: [(IpAddr, IpAddr); 6] = [
    (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)),
    (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
    (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped())),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::LOCALHOST)),
];

fn bind((ip, is_only_v6): (Ipv6Addr, bool)) -> UdpSocket {
    UdpSocket::bind_with(SocketAddr::new(ip.into(), 0), |socket| Ok(set_ipv6_v6only(socket, is_only_v6)?)).unwrap()
}

/// Sends by `send_to`, and is answered.
async fn send_to(local: (Ipv6Addr, bool), (bound, to): (IpAddr, IpAddr)) -> Result<[IpAddr; 3], Option<Errno>> {
    let receiver = UdpSocket::bind(SocketAddr::new(bound, 0)).await.unwrap();
    let to = SocketAddr::new(to, receiver.local_addr().unwrap().port());
    let (socket, mut buf) = (bind(local), [0; 8]);
    number(socket.send_to(b"hello", to).await)?;
    let (_, from) = receiver.recv_from(&mut buf).await.unwrap();
    receiver.send_to(b"hello", from).await.unwrap();
    let (_, back) = socket.recv_from(&mut buf).await.unwrap();
    Ok([from.ip(), back.ip(), socket.local_addr().unwrap().ip()])
}

/// Connects, and is answered.
async fn connect(local: (Ipv6Addr, bool), (bound, to): (IpAddr, IpAddr)) -> Result<[IpAddr; 4], Option<Errno>> {
    let receiver = UdpSocket::bind(SocketAddr::new(bound, 0)).await.unwrap();
    let to = SocketAddr::new(to, receiver.local_addr().unwrap().port());
    let (socket, mut buf) = (bind(local), [0; 8]);
    number(socket.connect(to).await)?;
    socket.send(b"hello").await.unwrap();
    let (_, from) = receiver.recv_from(&mut buf).await.unwrap();
    receiver.send_to(b"hello", from).await.unwrap();
    let (_, back) = socket.recv_from(&mut buf).await.unwrap();
    Ok([from.ip(), back.ip(), ip(socket.local_addr())?, ip(socket.peer_addr())?])
}

#[test]
fn datagrams_of_a_socket_of_ipv6_reach_ipv4_if_it_is_for_both() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return eprintln!("skipped: there is no IPv6 here");
    }
    for local in LOCALS {
        for target in TARGETS {
            same(async || (local, target, send_to(local, target).await, connect(local, target).await));
        }
    }
}

#[test]
fn datagrams_of_a_socket_of_ipv4_do_not_reach_ipv6() {
    same(async || {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let tries = ["[::1]:1", "[::ffff:127.0.0.1]:1"].map(|to| to.parse::<SocketAddr>().unwrap());
        let mut answers = Vec::new();
        for to in tries {
            answers.push((number(socket.send_to(b"hello", to).await), number(socket.connect(to).await)));
        }
        answers
    });
}

#[test]
fn connections_of_a_socket_of_ipv6_reach_ipv4_if_it_is_for_both() {
    async fn connect((local, is_only_v6): (Ipv6Addr, bool), to: IpAddr) -> Result<[IpAddr; 2], Option<Errno>> {
        let listener = TcpListener::bind("[::]:0").await.unwrap();
        let socket = TcpSocket::new_v6().unwrap();
        set_ipv6_v6only(&socket, is_only_v6).unwrap();
        socket.bind(SocketAddr::new(local.into(), 0)).unwrap();
        let to = SocketAddr::new(to, listener.local_addr().unwrap().port());
        let stream = number(socket.connect(to).await)?;
        Ok([ip(stream.local_addr())?, ip(stream.peer_addr())?])
    }
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return eprintln!("skipped: there is no IPv6 here");
    }
    for local in LOCALS {
        for (_, to) in TARGETS {
            same(async || (local, to, connect(local, to).await));
        }
    }
}

/// What the calls on one end of a connection answer that ask for its state.
fn state(stream: &TcpStream) -> impl PartialEq + Debug + use<> {
    let ends = [Shutdown::Read, Shutdown::Write, Shutdown::Both];
    (ip(stream.peer_addr()), ip(stream.local_addr()), ends.map(|how| number(stream.shutdown(how))))
}

/// Two ends, of which each has said so many bytes.
async fn pair(bytes: [usize; 2]) -> [TcpStream; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let server = listener.accept().await.unwrap().0;
    for (stream, count) in [&client, &server].into_iter().zip(bytes) {
        stream.write_all(&vec![0; count]).await.unwrap();
    }
    [client, server]
}

#[test]
fn a_connection_that_both_have_ended_is_no_longer_connected() {
    for bytes in [[0, 0], [3, 0], [0, 3]] {
        same(async || {
            let ends = pair(bytes).await;
            ends[0].shutdown(Shutdown::Write).unwrap();
            while ends[1].read(&mut [0; 8]).await.unwrap() > 0 {}
            let half = ends.each_ref().map(|end| ip(end.peer_addr()));
            ends[1].shutdown(Shutdown::Write).unwrap();
            // The kernel may take a while until the ends have come.
            for _ in 0..1000 {
                if ends.iter().all(|end| end.peer_addr().is_err()) {
                    break;
                }
                sleep(Duration::from_millis(10)).await;
            }
            let states = ends.each_ref().map(state);
            let mut rest = Vec::new();
            for end in &ends {
                rest.push(number(end.read_to_end(&mut Vec::new()).await));
            }
            (bytes, half, states, rest, ends.each_ref().map(|end| number(end.try_write(b"x"))))
        });
    }
}
