//! The example `http`: what it promises, over real sockets, with limits short enough for tests.

use std::future::Future;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{fs, net};

use mini::net::{TcpListener, TcpStream};
use mini::runtime::{Builder, Handle};
use mini::task::JoinSet;
use mini::time::{Instant, timeout};
use mini_examples::resident_memory;
use mini_tests::child_support::full_name;
use mini_tests::net_support::open_files;
use mini_tests::{LIMIT, in_child, until, within};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[path = "../http.rs"]
#[allow(dead_code)]
mod http;

use http::check::Site;
use http::client::{Client, misbehave};
use http::server::{Limits, Server};

const GET: &str = "GET /hello.txt HTTP/1.1\r\nHost: x\r\n\r\n";

/// A limit that the test waits for.
const SHORT: Duration = Duration::from_millis(100);

/// Serves a new site while `test` runs, stops, and gives how many connections were cut off.
fn serve<F>(limits: Limits, test: impl FnOnce(SocketAddr, PathBuf) -> F + Send + 'static) -> usize
where
    F: Future<Output = io::Result<()>>,
{
    serve_on(Builder::new_current_thread(), limits, test)
}

fn serve_on<F>(
    mut builder: Builder,
    limits: Limits,
    test: impl FnOnce(SocketAddr, PathBuf) -> F + Send + 'static,
) -> usize
where
    F: Future<Output = io::Result<()>>,
{
    let site = Site::new().unwrap();
    let runtime = builder.max_blocking_threads(4).build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = async_channel::bounded(1);
        let server = Server::new(site.root(), limits);
        let serving = mini::spawn(async move { server.serve(listener, stopped).await });
        test(address, site.root()).await.unwrap();
        stop.close();
        serving.await.unwrap()
    })
}

/// What the server answers to `request` on a connection of its own, which it then closes.
async fn last_status(server: SocketAddr, request: impl AsRef<[u8]>) -> io::Result<u16> {
    let mut client = Client::connect(server).await?;
    client.send(request).await?;
    let answer = client.answer().await?;
    assert_eq!(answer.header("connection"), "close");
    client.closed().await?;
    Ok(answer.status)
}

async fn read_to_end(stream: &TcpStream, all: &mut Vec<u8>) -> io::Result<()> {
    let mut part = [0; 1024];
    while let read @ 1.. = stream.read(&mut part).await? {
        all.extend_from_slice(&part[..read]);
    }
    Ok(())
}

#[test]
fn the_self_check_passes() {
    within(LIMIT, || http::run(Vec::new()).unwrap());
}

#[test]
fn bad_arguments_are_errors() {
    within(LIMIT, || {
        let taken = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port().to_string();
        let run = |args: &[&str]| http::run(args.iter().map(|&arg| arg.to_owned()).collect()).unwrap_err();
        for args in [
            &["--wrong"][..],
            &["--root", "/"],
            &["--port", "80"],
            &["--root"],
            &["--root", "/", "--port", "-1"],
            &["--root", "/", "--port", "0", "--address", "nowhere"],
        ] {
            let error = run(args);
            assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("usage: "), "{error}");
        }
        assert_eq!(run(&["--root", "/no/such/directory", "--port", "0"]).kind(), ErrorKind::NotFound);
        assert_eq!(run(&["--root", "/dev/null", "--port", "0"]).kind(), ErrorKind::NotADirectory);
        assert_eq!(run(&["--root", "/", "--port", &port]).kind(), ErrorKind::AddrInUse);
    });
}

#[test]
fn files_are_what_they_are_now() {
    within(LIMIT, || {
        let cut_off = serve(Limits::default(), |server, root| async move {
            let mut client = Client::connect(server).await?;
            for size in [0, 1, 1000, 65_535, 65_536, 65_537, 300_000] {
                let content: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
                fs::write(root.join("changing.bin"), &content)?;
                for _ in 0..2 {
                    let answer = client.get("/changing.bin").await?;
                    assert!(answer.status == 200 && answer.body == content, "{size} bytes");
                    assert_eq!(answer.header("content-type"), "application/octet-stream");
                }
                client.send("HEAD /changing.bin HTTP/1.1\r\nHost: x\r\n\r\n").await?;
                assert_eq!(client.answer_to("HEAD").await?.header("content-length"), size.to_string());
            }
            fs::remove_file(root.join("changing.bin"))?;
            assert_eq!(client.get("/changing.bin").await?.status, 404);
            Ok(())
        });
        assert_eq!(cut_off, 0);
    });
}

#[test]
fn names_are_decoded_once_and_stay_below_the_root() {
    within(LIMIT, || {
        serve(Limits::default(), |server, root| async move {
            fs::write(root.join("with space.txt"), "space")?;
            fs::write(root.join("100%.txt"), "percent")?;
            fs::write(root.join("%2e"), "dot")?;
            fs::write(root.join("directory/..."), "dots")?;
            let mut client = Client::connect(server).await?;
            for (target, status) in [
                ("/with%20space.txt", 200),
                ("/100%25.txt", 200),
                ("/%252e", 200),
                ("/directory/...", 200),
                ("//hello.txt", 200),
                ("/./hello.txt?../../x", 200),
                ("/directory/../hello.txt", 403),
                ("/..", 403),
                ("/.%2E/", 403),
                ("/%2e%2e%2fsecret.txt", 403),
                ("/%252e%252e/secret.txt", 404),
                ("/..%00", 400),
                ("/%", 400),
                ("hello.txt", 400),
                ("http://x", 404),
                ("http://x/../secret.txt", 403),
            ] {
                assert_eq!(client.get(target).await?.status, status, "{target}");
            }
            assert_eq!(client.get(&format!("/{}", "x".repeat(300))).await?.status, 404, "a name that is too long");
            Ok(())
        });
    });
}

#[test]
fn a_fifo_is_refused_and_holds_up_nobody() {
    within(LIMIT, || {
        serve(Limits::default(), |server, root| async move {
            assert!(Command::new("mkfifo").arg(root.join("fifo")).status()?.success());
            let mut client = Client::connect(server).await?;
            for _ in 0..8 {
                assert_eq!(client.get("/fifo").await?.status, 404);
            }
            assert_eq!(client.get("/hello.txt").await?.status, 200);
            Ok(())
        });
    });
}

#[test]
fn a_thousand_clients_who_miss_share_four_threads() {
    // Two descriptors for each client are more than the 1024 that a program usually begins with.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    within(LIMIT, || {
        serve(Limits::default(), |server, _| async move {
            let mut clients = JoinSet::new();
            for number in 0..1000 {
                clients.spawn(async move { Client::connect(server).await?.get(&format!("/missing/{number}")).await });
            }
            while let Some(answer) = clients.join_next().await {
                assert_eq!(answer??.status, 404);
                assert!(Handle::current().metrics().num_blocking_threads() <= 4);
            }
            Ok(())
        });
    });
}

#[test]
fn what_is_too_much_is_refused() {
    within(LIMIT, || {
        serve(Limits::default(), |server, _| async move {
            let line = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(20_000));
            assert_eq!(last_status(server, line).await?, 431);
            let lines = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(100));
            assert_eq!(last_status(server, lines).await?, 431);
            let post = |rest: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{rest}");
            assert_eq!(last_status(server, post("Content-Length: 1048577\r\n\r\n")).await?, 413);
            assert_eq!(last_status(server, post("Content-Length: 99999999999999999999999\r\n\r\n")).await?, 413);
            let chunked = post("Transfer-Encoding: chunked\r\n\r\n");
            let small = format!("{chunked}{}", "1\r\nx\r\n".repeat(300_000));
            assert_eq!(last_status(server, small).await?, 413, "many small ones");
            assert_eq!(last_status(server, format!("{chunked}ffffffffffffffff\r\n")).await?, 413);
            assert_eq!(last_status(server, format!("{chunked}1;{}", "x".repeat(300))).await?, 400);
            assert_eq!(last_status(server, format!("{chunked}0\r\n{}", "A: b\r\n".repeat(17))).await?, 431);
            Ok(())
        });
    });
}

#[test]
fn a_request_that_may_be_read_in_two_ways_is_refused() {
    within(LIMIT, || {
        serve(Limits::default(), |server, _| async move {
            for headers in [
                "Content-Length: 4\r\nContent-Length: 5\r\n",
                "Content-Length: +4\r\n",
                "Content-Length: 4, 4\r\n",
                "Content-Length: \r\n",
                "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                "Host: y\r\n",
                "Content-Length : 4\r\n",
            ] {
                let request = format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\nbody");
                assert_eq!(last_status(server, request).await?, 400, "{headers}");
            }
            assert_eq!(last_status(server, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").await?, 400);
            let chunk = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxyz\r\n0\r\n\r\n";
            assert_eq!(last_status(server, chunk).await?, 400, "more than the chunk has");
            Ok(())
        });
    });
}

#[test]
fn a_body_that_waits_to_be_asked_for_is_not_asked_for() {
    within(LIMIT, || {
        serve(Limits::default(), |server, _| async move {
            let request = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n";
            assert_eq!(last_status(server, request).await?, 405);
            Ok(())
        });
    });
}

#[test]
fn who_is_too_slow_is_told_so() {
    within(LIMIT, || {
        let limits = Limits { header: SHORT, body: SHORT, ..Limits::default() };
        serve(limits, |server, _| async move {
            assert_eq!(last_status(server, "GET / HTTP/1.1\r\nHost").await?, 408);
            assert_eq!(last_status(server, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nno").await?, 408);
            let mut client = Client::connect(server).await?;
            client.send([GET, "GET"].concat()).await?;
            assert_eq!((client.answer().await?.status, client.answer().await?.status), (200, 408));
            Ok(())
        });
    });
}

#[test]
fn who_says_nothing_is_left() {
    within(LIMIT, || {
        serve(Limits { idle: SHORT, ..Limits::default() }, |server, _| async move {
            Client::connect(server).await?.closed().await?;
            let mut client = Client::connect(server).await?;
            client.get("/").await?;
            client.closed().await
        });
    });
}

#[test]
fn who_sends_a_little_at_a_time_gets_no_more_time() {
    within(LIMIT, || {
        let limits = Limits::default();
        let head = "POST / HTTP/1.1\r\nHost: x\r\n";
        let (sized, chunked) = ("Content-Length: 1000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n");
        let slow: [Slow; 9] = [
            ("", vec!["\r\n"], limits.idle, None),
            ("", vec!["\r", "\n"], limits.idle + limits.header, None),
            (GET, vec!["\r\n"], limits.idle, None),
            (GET, vec!["\r", "\n"], limits.idle + limits.header, None),
            ("\r\nGET /", vec!["x"], limits.header, Some(408)),
            ("GET / HTTP/1.1\r\n", vec!["A: b\r\n"], limits.header, Some(408)),
            (&format!("{head}{sized}"), vec!["x"], limits.body, Some(408)),
            (&format!("{head}{chunked}"), vec!["1\r\n", "x\r\n"], limits.body, Some(408)),
            (&format!("{head}{chunked}0\r\n"), vec!["A: b\r\n"], limits.body, Some(408)),
        ]
        .map(|(first, pieces, limit, status)| (first.to_owned(), pieces, limit, status));
        serve_on(Builder::new_current_thread().start_paused(true).clone(), limits, |server, _| async move {
            for client in slow {
                is_cut_off(server, client).await?;
            }
            Ok(())
        });
    });
}

/// What is sent first, what is sent again and again, how long the server may wait, and its status then.
type Slow = (String, Vec<&'static str>, Duration, Option<u16>);

/// Sends as a slow client does until the server ends the connection, which it must do within the limit.
async fn is_cut_off(server: SocketAddr, (first, pieces, limit, status): Slow) -> io::Result<()> {
    let mut client = Client::connect(server).await?;
    client.stream.set_nodelay(true)?; // real time does not pass
    client.send(&first).await?;
    if first == GET {
        assert_eq!(client.answer().await?.status, 200);
    }
    let mut more = pieces.iter().cycle();
    let patience = Instant::now() + limit;
    let mut answer = Vec::new();
    // A little more every two seconds, until the server has had enough.
    while Instant::now() <= patience {
        client.send(more.next().expect("a cycle")).await?;
        let end = read_to_end(&client.stream, &mut answer);
        if let Ok(ended) = timeout(Duration::from_secs(2), end).await {
            ended?;
            break;
        }
    }
    let what = (&first, &pieces, String::from_utf8_lossy(&answer));
    assert!(Instant::now() <= patience + Duration::from_secs(1), "it goes on: {what:?}");
    let begin = status.map_or(String::new(), |status| format!("HTTP/1.1 {status} "));
    assert!(answer.starts_with(begin.as_bytes()) && (status.is_some() || answer.is_empty()), "{what:?}");
    Ok(())
}

#[test]
fn who_does_not_read_is_cut_off() {
    within(LIMIT, || {
        serve(Limits { write: SHORT, ..Limits::default() }, |server, _| async move {
            let deaf = Client::connect(server).await?;
            deaf.send("GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n").await?;
            let tasks = || Handle::current().metrics().num_alive_tasks();
            until(|| tasks() == 2).await; // the one that accepts, and that of the client
            until(|| tasks() == 1).await;
            let mut other = Client::connect(server).await?;
            assert_eq!(other.get("/hello.txt").await?.status, 200);
            drop(deaf);
            Ok(())
        });
    });
}

#[test]
fn a_half_closed_client_gets_its_answers() {
    within(LIMIT, || {
        serve(Limits::default(), |server, _| async move {
            let mut client = Client::connect(server).await?;
            client.send(GET.repeat(100)).await?;
            client.stream.shutdown(net::Shutdown::Write)?;
            for _ in 0..100 {
                assert_eq!(client.answer().await?.body, b"Hello, world!\n");
            }
            client.closed().await
        });
    });
}

#[test]
fn the_next_client_waits_until_there_is_room() {
    within(LIMIT, || {
        serve(Limits { connections: 2, ..Limits::default() }, |server, _| async move {
            let mut first = Client::connect(server).await?;
            let mut second = Client::connect(server).await?;
            first.get("/").await?;
            second.get("/").await?;
            let mut third = Client::connect(server).await?;
            third.send(GET).await?;
            first.get("/").await?; // the third could have been accepted by now
            assert_eq!(third.stream.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
            drop(first);
            assert_eq!(third.answer().await?.status, 200);
            second.get("/").await.map(drop)
        });
    });
}

#[test]
fn the_grace_ends() {
    within(LIMIT, || {
        let limits = Limits { grace: SHORT, ..Limits::default() };
        let cut_off = serve(limits, |server, _| async move {
            let mut client = Client::connect(server).await?;
            client.send([GET, "GET"].concat()).await?; // and no more of it
            client.answer().await?;
            std::mem::forget(client);
            Ok(())
        });
        assert_eq!(cut_off, 1);
    });
}

#[test]
fn large_files_are_not_held_in_memory() {
    in_child("large_files_are_not_held_in_memory", || {
        serve(Limits::default(), |server, _| async move {
            let before = resident_memory();
            let mut clients = Vec::new();
            for _ in 0..50 {
                let client = Client::connect(server).await?;
                client.send("GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n").await?;
                client.stream.read_exact(&mut [0; 1000]).await?; // it has been begun
                clients.push(client);
            }
            if let (Some(before), Some(after)) = (before, resident_memory()) {
                let grown = after.saturating_sub(before);
                assert!(grown < 20 << 20, "{grown} bytes for 50 files of 8 MiB");
            }
            Ok(())
        });
    });
}

#[test]
fn a_server_that_is_dropped_leaves_nothing_open() {
    in_child("a_server_that_is_dropped_leaves_nothing_open", || {
        let files = open_files();
        let site = Site::new().unwrap();
        let runtime = Builder::new_current_thread().build().unwrap();
        let clients = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let (_stop, stopped) = async_channel::bounded(1);
            let server = Server::new(site.root(), Limits::default());
            mini::spawn(async move { server.serve(listener, stopped).await });
            let mut clients = Vec::new();
            for request in [
                "",
                "GET",
                GET,
                "GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
            ] {
                let mut client = Client::connect(address).await?;
                client.get("/").await?;
                client.send(request).await?;
                clients.push(client);
            }
            clients[0].get("/").await?; // the others have been polled by now
            io::Result::Ok(clients)
        });
        drop(runtime);
        drop(clients.unwrap());
        closed_down_to(files);
    });
}

#[test]
fn ten_thousand_bad_clients_leave_nothing_behind() {
    in_child("ten_thousand_bad_clients_leave_nothing_behind", || {
        let files = open_files();
        let limits = Limits { header: SHORT, ..Limits::default() };
        let cut_off = serve(limits, |server, root| async move {
            fs::write(root.join("medium.bin"), vec![7; 300_000])?;
            crowd(server, 2_000).await?;
            let before = resident_memory();
            crowd(server, 8_000).await?;
            if let (Some(before), Some(after)) = (before, resident_memory()) {
                let grown = after.saturating_sub(before);
                assert!(grown < 4 << 20, "{grown} bytes more than after the first 2,000");
            }
            assert_eq!(Client::connect(server).await?.get("/hello.txt").await?.status, 200);
            Ok(())
        });
        assert_eq!(cut_off, 0);
        closed_down_to(files);
    });
}

/// Waits until only `files` files are open: a thread of the blocking pool that ends holds on to the runtime's for a
/// moment.
fn closed_down_to(files: usize) {
    while open_files() != files {
        std::thread::yield_now();
    }
}

/// Runs `count` clients that don't behave, two hundred at a time.
async fn crowd(server: SocketAddr, count: usize) -> io::Result<()> {
    let mut clients = JoinSet::new();
    for way in 0..count {
        if clients.len() == 200 {
            let _ = clients.join_next().await.expect("there are some")?; // whatever it was told
        }
        clients.spawn(misbehave(server, way, "/medium.bin"));
    }
    while let Some(client) = clients.join_next().await {
        let _ = client?;
    }
    Ok(())
}

/// The server in a process of its own, and where it serves.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The variable that tells a process where to serve.
const ROOT: &str = "MINI_TEST_HTTP_ROOT";

fn start(test: &str, root: &Path) -> (Process, SocketAddr, BufReader<ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([full_name(test), "--exact", "--nocapture"]).env(ROOT, root).stdout(Stdio::piped());
    let mut process = Process(command.spawn().unwrap());
    let mut lines = BufReader::new(process.0.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the server has ended");
    }
    let address = line.trim_end().rsplit('/').next().unwrap().parse().unwrap();
    (process, address, lines)
}

#[test]
fn ctrl_c_finishes_what_was_begun() {
    if let Ok(root) = std::env::var(ROOT) {
        return http::run(["--root", &root, "--port", "0"].map(String::from).to_vec()).unwrap();
    }
    within(LIMIT, || {
        let site = Site::new().unwrap();
        let (mut process, server, mut lines) = start("ctrl_c_finishes_what_was_begun", &site.root());
        let mut client = net::TcpStream::connect(server).unwrap();
        client.write_all([GET, "GET /hello.txt HTTP/1.1\r\n"].concat().as_bytes()).unwrap();
        let mut answer = [0; 4096];
        assert!(client.read(&mut answer).unwrap() > 0); // the second request has been begun now
        let signal = format!("kill -INT {}", process.0.id());
        assert!(Command::new("sh").args(["-c", &signal]).status().unwrap().success());
        while net::TcpStream::connect(server).is_ok() {
            std::thread::yield_now();
        }
        client.write_all(b"Host: x\r\n\r\n").unwrap();
        let mut rest = String::new();
        client.read_to_string(&mut rest).unwrap();
        assert!(rest.starts_with("HTTP/1.1 200 OK\r\n") && rest.contains("\r\nConnection: close\r\n"), "{rest}");
        assert!(rest.ends_with("\r\n\r\nHello, world!\n"), "{rest}");
        drop(client);
        let mut said = String::new();
        lines.read_to_string(&mut said).unwrap();
        assert!(said.contains("2 requests answered, 0 connections cut off"), "{said}");
        assert!(process.0.wait().unwrap().success());
    });
}

#[test]
fn curl_is_happy() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    within(LIMIT, || {
        serve(Limits::default(), |server, root| async move {
            let site = format!("http://{server}");
            let curl = |args: &[&str]| {
                let mut command = mini::process::Command::new("curl");
                command.args(["--silent", "--show-error", "--max-time", "30"]).args(args);
                async move { command.output().await.map(|output| (output.status.success(), output.stdout)) }
            };
            let url = |path: &str| format!("{site}{path}");
            let (hello, big) = (url("/hello.txt"), url("/big.bin"));
            assert_eq!(curl(&[&hello, &hello]).await?, (true, b"Hello, world!\nHello, world!\n".to_vec()));
            assert_eq!(curl(&["--http1.0", &hello]).await?, (true, b"Hello, world!\n".to_vec()));
            assert!(curl(&[&big]).await?.1 == fs::read(root.join("big.bin"))?);
            assert!(String::from_utf8_lossy(&curl(&["--head", &hello]).await?.1).contains("Content-Length: 14\r\n"));
            let upload = format!("@{}", root.join("big.bin").display());
            let (_, said) = curl(&["--data-binary", &upload, &hello]).await?;
            assert!(said.is_empty() || said.starts_with(b"405") || said.starts_with(b"413"));
            let (_, said) = curl(&["--data", "short", &hello]).await?;
            assert_eq!(said, b"405 Method Not Allowed\n");
            Ok(())
        });
    });
}
