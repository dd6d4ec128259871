//! What the program does without arguments: a client talks to the server, and each answer is compared.

use std::io;
use std::time::{Duration, Instant};

use mini::net::{TcpListener, TcpStream};
use mini::time::sleep;

use super::server::{self, Style};

/// Commands as a person types them, and their replies as they come.
const TALK: [(&str, &str); 12] = [
    ("PING", "+PONG\r\n"),
    ("SET colour blue", "+OK\r\n"),
    ("GET colour", "$4\r\nblue\r\n"),
    ("SET colour red NX", "$-1\r\n"),
    ("INCR visitors", ":1\r\n"),
    ("MSET a 1 b 2", "+OK\r\n"),
    ("MGET a b nothing", "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n"),
    ("DEL a b", ":2\r\n"),
    ("EXPIRE colour 100", ":1\r\n"),
    ("TTL visitors", ":-1\r\n"),
    ("INCR colour", "-ERR value is not an integer or out of range\r\n"),
    ("FLY", "-ERR unknown command 'FLY', with args beginning with: \r\n"),
];

/// Commands that are sent at once, and how often.
const PIPELINE: usize = 100;
const ROUNDS: usize = 1000;

/// How long the server is left alone.
const IDLE: Duration = Duration::from_millis(100);

/// Starts a server and talks to it.
pub(crate) async fn run(style: Style) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    println!("style {style}, on {address}");
    server::start(listener, style)?;
    let client = TcpStream::connect(address).await?;
    for (command, reply) in TALK {
        ask(&client, &format!("{command}\r\n"), reply).await?;
        println!("  {command:<20} {}", reply.trim_end().replace("\r\n", " "));
    }

    ask(&client, "SET soon gone PX 20\r\n", "+OK\r\n").await?;
    sleep(Duration::from_millis(25)).await;
    ask(&client, "GET soon\r\n", "$-1\r\n").await?;
    println!("  a key that expires after 20 ms is gone after 25");

    let (commands, replies) = ("INCR visitors\r\n".repeat(PIPELINE), PIPELINE * ":100000\r\n".len());
    ask(&client, "SET visitors 100000\r\n", "+OK\r\n").await?;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        client.write_all(commands.as_bytes()).await?;
        client.read_exact(&mut vec![0; replies]).await?;
    }
    let rate = (PIPELINE * ROUNDS) as f64 / begin.elapsed().as_secs_f64();
    ask(&client, "GET visitors\r\n", &format!("$6\r\n{}\r\n", 100_000 + PIPELINE * ROUNDS)).await?;
    println!("  {} times INCR, {PIPELINE} in a pipeline: {rate:.0} per second", PIPELINE * ROUNDS);

    // Nobody says anything.
    let before = cpu_time();
    sleep(IDLE).await;
    println!("  {} ms without a request cost {} ms of CPU time", IDLE.as_millis(), (cpu_time() - before).as_millis());

    ask(&client, "*1\r\n$99999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n").await?;
    match client.read(&mut [0]).await? {
        0 => println!("  a client that breaks the protocol gets an error and is disconnected"),
        _ => return Err(io::Error::other("a broken protocol went on")),
    }
    Ok(())
}

/// Returns the CPU time that this process has used (clock_gettime(2)). On NetBSD that is zero: rustix has no name for
/// the clock.
fn cpu_time() -> Duration {
    #[cfg(target_os = "netbsd")]
    return Duration::ZERO;
    #[cfg(not(target_os = "netbsd"))]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// Sends bytes, and expects `wanted` as the answer.
async fn ask(client: &TcpStream, sent: &str, wanted: &str) -> io::Result<()> {
    client.write_all(sent.as_bytes()).await?;
    let mut reply = vec![0; wanted.len()];
    client.read_exact(&mut reply).await?;
    if reply != wanted.as_bytes() {
        let reply = String::from_utf8_lossy(&reply);
        return Err(io::Error::other(format!("{sent:?} was answered by {reply:?}, not by {wanted:?}")));
    }
    Ok(())
}
