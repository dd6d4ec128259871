//! A timer and a client beside I/O that is ready at once, or by the next look at the poller, and never ends.
//!
//! Its turn ends by the runtime's budget, if it has one, or by a wait: connect(2) over loopback says `EINPROGRESS`, a
//! bulk transfer fills its buffer, and some runtimes read files in their pool. All on one CPU, the client's thread on
//! another.

use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use super::{Flavour, Load, Row, Rt, Started, Stop, Subject, outside};
use crate::measured::{Figure, Group, Unit};
use crate::rt::{Listener, Stream, Udp};
use crate::stats::percentile;
use crate::workload::files::Scratch;
use crate::workload::stalls::ask_in_turn;
use crate::workload::tcp::{connect, serve};
use crate::workload::timers::lateness;

/// What the timer waits for.
const TIME: Duration = Duration::from_millis(5);

/// Bytes of a write in a bulk transfer, and of what its reads offer.
const PIECE: usize = 64 << 10;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for flavour in [Flavour::CurrentThread, Flavour::MultiThread(1), Flavour::PerCore] {
        rows.push(Row::new::<Beside<Accepts>>(flavour));
        rows.push(Row::new::<Beside<FileReads>>(flavour).without_monoio());
        rows.push(Row::new::<Beside<Datagrams>>(flavour));
        rows.push(Row::new::<Beside<Bulk>>(flavour));
    }
    rows.into_iter().map(Row::in_five_rounds).map(Row::on_one_cpu).collect()
}

/// A task whose I/O never ends.
trait Ready: 'static {
    const NAME: &'static str;

    fn run<R: Rt>(stop: Stop) -> impl Future<Output = io::Result<()>> + Send;
}

/// A timer and an echo beside `W`.
struct Beside<W>(PhantomData<W>);

impl<W: Ready> Subject for Beside<W> {
    fn name() -> String {
        format!("beside {}", W::NAME)
    }

    fn group() -> Group {
        Group::Fairness
    }

    fn figures() -> Vec<Figure> {
        let figure = |suffix| Figure::lower(suffix, Unit::Microseconds);
        ["lateness of 5 ms, p50", "lateness of 5 ms, max", "echo, p50", "echo, p99"].map(figure).into()
    }

    fn start<R: Rt>(flavour: Flavour, load: Load) -> io::Result<Started> {
        let rt = R::start(flavour)?;
        let span = load.pick(Duration::from_millis(500), Duration::from_millis(50));
        let sample = move || {
            let (lates, echoes) = rt.block_on(async move { R::spawn(measure::<R, W>(flavour, span)).await });
            vec![
                percentile(&lates, 50.0),
                percentile(&lates, 100.0),
                percentile(&echoes, 50.0),
                percentile(&echoes, 99.0),
            ]
        };
        Ok(Started::Probe(Box::new(sample)))
    }
}

/// How late the timer was, and what the client waited for its answers.
async fn measure<R: Rt, W: Ready>(flavour: Flavour, span: Duration) -> (Vec<f64>, Vec<f64>) {
    let stop = Stop::new();
    let (client, server) = connect().expect("loopback connects");
    let server = R::Stream::from_std(server).expect("the runtime takes the server");
    let server = R::spawn(serve(server));
    let ready = R::spawn(W::run::<R>(stop.clone()));
    let client = outside(flavour, move || ask_in_turn(vec![client], span).expect("the server answers"));
    let timer = R::spawn(async move {
        let start = Instant::now();
        let mut lates = Vec::new();
        while start.elapsed() < span {
            lates.push(lateness::<R>(TIME).await);
        }
        lates
    });
    let lates = timer.await;
    server.await.expect("the server sees the end");
    stop.end();
    ready.await.expect("its I/O goes on until it is stopped");
    (lates, client.join().expect("the client ends"))
}

/// Connects to itself and accepts.
struct Accepts;

impl Ready for Accepts {
    const NAME: &'static str = "connect and accept";

    async fn run<R: Rt>(stop: Stop) -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        // Accepted sockets inherit it (socket(7)): their end is a reset, which leaves no port in `TIME_WAIT`.
        sockopt::set_socket_linger(&listener, Some(Duration::ZERO))?;
        let listener = R::Listener::from_std(listener)?;
        while !stop.is_over() {
            let client = R::Stream::connect(addr).await?;
            drop(listener.accept().await?);
            drop(client);
        }
        Ok(())
    }
}

/// Reads a file of 64 KiB from open to close; the kernel has it in memory.
struct FileReads;

impl Ready for FileReads {
    const NAME: &'static str = "reads of a cached file of 64 KiB";

    async fn run<R: Rt>(stop: Stop) -> io::Result<()> {
        let file = Scratch::new()?;
        while !stop.is_over() {
            R::read_file(&file.0).await?;
        }
        Ok(())
    }
}

/// Sends datagrams of 64 bytes to a socket that nobody reads: the kernel drops what it has no room for.
struct Datagrams;

impl Ready for Datagrams {
    const NAME: &'static str = "UDP sends";

    async fn run<R: Rt>(stop: Stop) -> io::Result<()> {
        let sink = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let addr = sink.local_addr()?;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let mut socket = R::Udp::from_std(socket)?;
        let mut buf = vec![0; 64];
        while !stop.is_over() {
            let result;
            (result, buf) = socket.send_to(buf, addr).await;
            result?;
        }
        Ok(())
    }
}

/// A transfer over loopback, as fast as it goes, with both ends in the runtime.
struct Bulk;

impl Ready for Bulk {
    const NAME: &'static str = "a bulk transfer";

    async fn run<R: Rt>(stop: Stop) -> io::Result<()> {
        let (sender, receiver) = connect()?;
        let mut sender = R::Stream::from_std(sender)?;
        let receiver = R::spawn(drain(R::Stream::from_std(receiver)?));
        let mut buf = vec![0; PIECE];
        while !stop.is_over() {
            let result;
            (result, buf) = sender.write_all(buf, PIECE).await;
            result?;
        }
        drop(sender);
        receiver.await
    }
}

/// Reads to the end.
async fn drain(mut stream: impl Stream) -> io::Result<()> {
    let mut buf = vec![0; PIECE];
    loop {
        let result;
        (result, buf) = stream.read(buf).await;
        if result? == 0 {
            return Ok(());
        }
    }
}
