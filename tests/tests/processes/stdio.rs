//! The standard streams: this program starts itself, with pipes, files, sockets and a terminal for them.
//!
//! Each test has a child's part, which the environment asks for. The child's output on stdout comes after that of the
//! test harness and a mark, and ends with the process.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio, exit};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::StreamExt;
use futures_lite::future::or;
use futures_lite::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use mini::io::{stderr, stdin, stdout};
use mini::runtime::Builder;
use mini_tests::child_support::own_test;
use mini_tests::net_support::{ScratchPath, Words};
use mini_tests::{Counts, LIMIT, poll_with, within};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

mod terminal;

/// Set in a child.
const ROLE: &str = "MINI_STDIO_CHILD";

/// After this mark the child's output begins.
const MARK: &str = "<<<";

/// In a child runs `body`, says the mark before and exits after it; otherwise returns how to start that child.
fn part<F: Future<Output = io::Result<()>>>(test: &str, body: impl FnOnce() -> F + Send + 'static) -> Command {
    if std::env::var_os(ROLE).is_some() {
        within(LIMIT, move || {
            print!("{MARK}");
            io::stdout().flush().unwrap();
            let done = Builder::new_current_thread().build().unwrap().block_on(body());
            exit(done.map_or_else(|error| panic!("{error:?}"), |()| 0));
        });
    }
    let mut command = own_test(test);
    command.env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Reads until `text` has come, and leaves out the mark and all before it.
fn hear(from: &mut impl Read, text: &str) {
    let mut heard = Vec::new();
    while !heard.ends_with(text.as_bytes()) {
        let mut byte = [0];
        from.read_exact(&mut byte).unwrap_or_else(|e| panic!("{e} after {:?}", String::from_utf8_lossy(&heard)));
        heard.push(byte[0]);
    }
}

/// All output after the mark.
fn rest(from: &mut impl Read) -> Vec<u8> {
    hear(from, MARK);
    let mut rest = Vec::new();
    from.read_to_end(&mut rest).unwrap();
    rest
}

/// Waits for a child that must end well, and soon.
fn ended(mut child: Child) {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return assert!(status.success(), "{status}");
        }
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("the child does not end");
        }
        thread::yield_now();
    }
}

/// Whether the open file behind `fd` is in non-blocking mode.
fn is_nonblocking(fd: impl AsFd) -> bool {
    fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK)
}

/// Writes back all that it reads.
async fn echo() -> io::Result<()> {
    let (stdin, stdout, mut buf) = (stdin(), stdout(), vec![0; 4096]);
    loop {
        match stdin.read(&mut buf).await? {
            0 => return stdout.flush().await,
            length => stdout.write_all(&buf[..length]).await?,
        }
    }
}

#[test]
fn lines_come_and_go_through_pipes() {
    let mut command = part("lines_come_and_go_through_pipes", || async {
        let (mut lines, mut out) = (BufReader::new(stdin()).lines(), stdout());
        while let Some(line) = lines.next().await {
            AsyncWriteExt::write_all(&mut out, format!("[{}]", line?).as_bytes()).await?;
        }
        out.close().await
    });
    let mut child = command.spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for line in ["first", "second", ""] {
        writeln!(to, "{line}").unwrap();
        hear(&mut from, &format!("[{line}]"));
    }
    drop(to);
    ended(child);
}

#[test]
fn much_goes_through_pipes_unharmed() {
    let mut command = part("much_goes_through_pipes_unharmed", echo);
    echoes_much(command.spawn().unwrap());
}

/// Sends much to a child that echoes, through its own pipes.
fn echoes_much(mut child: Child) {
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let bytes = Words::new(1).take(4 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            to.write_all(&bytes).unwrap();
            drop(to);
        });
        assert!(rest(&mut from) == bytes);
    });
    ended(child);
}

#[test]
fn a_read_that_waits_holds_up_neither_runtime_nor_process() {
    let mut command = part("a_read_that_waits_holds_up_neither_runtime_nor_process", || async {
        let inner = Builder::new_multi_thread().worker_threads(2).shutdown_grace(LIMIT * 10).build()?;
        let mut reader = inner.spawn(async { stdin().read(&mut [0; 8]).await });
        let first = or(async { (&mut reader).await.map(drop).unwrap() }, mini::time::sleep(Duration::from_millis(1)));
        first.await;
        inner.shutdown_background();
        // Cancelled, or told that the runtime has shut down.
        assert!(reader.await.map_or(true, |read| read.is_err()));
        mini::spawn(async { stdin().read(&mut [0; 8]).await });
        mini::task::yield_now().await;
        Ok(())
    });
    let mut child = command.spawn().unwrap();
    let _open = child.stdin.take();
    ended(child);
}

#[test]
fn a_dropped_read_takes_nothing() {
    let mut command = part("a_dropped_read_takes_nothing", || async {
        let (stdin, mut buf, counts) = (stdin(), [0; 64], Counts::new());
        let mut read = stdin.read(&mut buf);
        assert!(poll_with(&mut read, &counts).is_pending());
        stdout().write_all(b"waits").await?;
        // By now the bytes may be there, or not; in both cases this read has not got them.
        drop(read);
        let mut bytes = Vec::new();
        (&stdin).read_to_end(&mut bytes).await?;
        assert_eq!(bytes, b"ping");
        Ok(())
    });
    let mut child = command.spawn().unwrap();
    hear(child.stdout.as_mut().unwrap(), "waits");
    child.stdin.take().unwrap().write_all(b"ping").unwrap();
    ended(child);
}

#[test]
fn what_a_reader_leaves_is_there_for_another() {
    let mut command = part("what_a_reader_leaves_is_there_for_another", || async {
        let mut byte = [0];
        assert_eq!(stdin().read(&mut byte).await?, 1);
        let mut rest = String::new();
        io::stdin().read_to_string(&mut rest)?;
        assert_eq!((byte, &*rest), (*b"p", "ing"));
        Ok(())
    });
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"ping").unwrap();
    ended(child);
}

#[test]
fn two_that_read_share_what_comes_and_block_nobody() {
    let mut command = part("two_that_read_share_what_comes_and_block_nobody", || async {
        let read = || async {
            let mut byte = [0];
            assert_eq!(stdin().read(&mut byte).await.unwrap(), 1);
            byte[0]
        };
        let tasks = [mini::spawn(read()), mini::spawn(read())];
        mini::task::yield_now().await;
        stdout().write_all(b"wait").await?;
        let mut bytes = Vec::new();
        for task in tasks {
            bytes.push(task.await.unwrap());
        }
        bytes.sort_unstable();
        assert_eq!(bytes, b"ab");
        Ok(())
    });
    let mut child = command.spawn().unwrap();
    hear(child.stdout.as_mut().unwrap(), "wait");
    let mut to = child.stdin.take().unwrap();
    to.write_all(b"a").unwrap();
    to.write_all(b"b").unwrap();
    ended(child);
}

#[test]
fn those_who_share_the_streams_go_on_blocking() {
    let mut command = part("those_who_share_the_streams_go_on_blocking", || async {
        let (stdin, stdout) = (stdin(), stdout());
        let mut read = [0; 4];
        stdout.write_all(b"open").await?;
        assert_eq!(stdin.read(&mut read).await?, 4);
        Ok(())
    });
    let (reader, mut writer) = io::pipe().unwrap();
    let (mut heard, out) = io::pipe().unwrap();
    let shared = (reader.try_clone().unwrap(), out.try_clone().unwrap());
    let child = command.stdin(reader).stdout(out).spawn().unwrap();
    drop(command);
    hear(&mut heard, "open");
    assert!(!is_nonblocking(&shared.0) && !is_nonblocking(&shared.1));
    writer.write_all(b"ping").unwrap();
    ended(child);
    assert!(!is_nonblocking(&shared.0) && !is_nonblocking(&shared.1));
}

#[test]
fn files_are_read_and_written_where_others_stand_in_them() {
    let mut command = part("files_are_read_and_written_where_others_stand_in_them", || async {
        let out = stdout();
        out.write_all(b"one ").await?;
        out.flush().await?;
        print!("two ");
        io::stdout().flush()?;
        let mut input = Vec::new();
        stdin().read_to_end(&mut input).await?;
        out.write_all(&input).await?;
        out.flush().await
    });
    let (from, to) = (ScratchPath::new("stdin"), ScratchPath::new("stdout"));
    let bytes = Words::new(1).take(1 << 20);
    std::fs::write(&from, [b"skipped", &bytes[..]].concat()).unwrap();
    let mut input = File::open(&from).unwrap();
    input.seek(io::SeekFrom::Start(7)).unwrap();
    let mut output = OpenOptions::new().create_new(true).read(true).write(true).open(&to).unwrap();
    output.write_all(b"before ").unwrap();
    ended(command.stdin(input).stdout(output).spawn().unwrap());
    let said = rest(&mut File::open(&to).unwrap());
    assert!(said == [b"one two ", &bytes[..]].concat());
    assert!(std::fs::read(&to).unwrap().starts_with(b"before "));
}

#[test]
fn what_a_job_writes_while_the_runtime_of_a_main_is_dropped_comes() {
    #[mini::main(crate = mini)]
    async fn body() {
        let (body, waits) = std::sync::mpsc::channel::<()>();
        drop(mini::spawn_blocking(move || {
            waits.recv().unwrap_err(); // the body has ended
            mini::block_on(async {
                stdout().write_all(&[b'x'; 60_000]).await.unwrap();
                stdout().write_all(b"last words").await.unwrap();
            });
        }));
        drop(body);
    }
    if std::env::var_os(ROLE).is_some() {
        print!("{MARK}");
        io::stdout().flush().unwrap();
        within(LIMIT, body);
        exit(0);
    }
    for _ in 0..30 {
        let to = ScratchPath::new("stdout");
        let test = "what_a_job_writes_while_the_runtime_of_a_main_is_dropped_comes";
        let mut command = part(test, || async { unreachable!("the child ends above") });
        ended(command.stdout(File::create(&to).unwrap()).spawn().unwrap());
        let said = rest(&mut File::open(&to).unwrap());
        assert_eq!((said.len(), said.ends_with(b"last words")), (60_010, true));
    }
}

/// A child that may not open the pipes anew, as they belong to another user; `None` if this process is not privileged.
fn as_somebody_else(mut command: Command) -> Option<Child> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    command.uid(65534).spawn().ok()
}

#[test]
fn pipes_of_somebody_else_go_through_a_thread() {
    let command = part("pipes_of_somebody_else_go_through_a_thread", || async {
        assert!(format!("{:?} {:?}", stdin(), stdout()).contains("by_thread: true"));
        echo().await
    });
    if let Some(child) = as_somebody_else(command) {
        echoes_much(child);
    }
}

#[test]
fn a_thread_that_reads_holds_up_neither_runtime_nor_process() {
    let command = part("a_thread_that_reads_holds_up_neither_runtime_nor_process", || async {
        let (stdin, counts, mut buf) = (stdin(), Counts::new(), [0; 8]);
        assert!(poll_with(&mut stdin.read(&mut buf), &counts).is_pending());
        stdout().write_all(b"waits").await?;
        stdout().flush().await?;
        // Bytes that the thread has read for a dropped future are there for the next one.
        assert_eq!((stdin.read(&mut buf).await?, &buf[..4]), (4, &b"ping"[..]));
        assert!(poll_with(&mut stdin.read(&mut buf), &counts).is_pending());
        Ok(())
    });
    if let Some(mut child) = as_somebody_else(command) {
        hear(child.stdout.as_mut().unwrap(), "waits");
        let mut to = child.stdin.take().unwrap();
        to.write_all(b"ping").unwrap();
        ended(child);
        drop(to);
    }
}

#[test]
fn a_device_without_readiness_ends_at_once() {
    let mut command = part("a_device_without_readiness_ends_at_once", || async {
        assert_eq!(stdin().read(&mut [0; 8]).await?, 0);
        assert_eq!(stdin().read(&mut []).await?, 0);
        stderr().write_all(b"nobody hears this").await?;
        stderr().flush().await
    });
    ended(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
}

#[test]
fn a_stream_that_is_not_open_for_it_ends_at_once_and_takes_all() {
    let test = "a_stream_that_is_not_open_for_it_ends_at_once_and_takes_all";
    let mut command = part(test, || async {
        let (stdin, stderr) = (stdin(), stderr());
        for _ in 0..2 {
            assert_eq!(stdin.read(&mut [0; 8]).await?, 0);
            stderr.write_all(b"nobody hears this").await?;
            stderr.flush().await?;
        }
        Ok(())
    });
    // As nohup(1) of GNU does it; then the wrong ends of a pipe, which others use.
    let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
    ended(command.stdin(null).stderr(File::open("/dev/null").unwrap()).spawn().unwrap());
    let (mut reader, mut writer) = io::pipe().unwrap();
    writer.write_all(b"for others").unwrap();
    let child = command.stdin(writer.try_clone().unwrap()).stderr(reader.try_clone().unwrap()).spawn().unwrap();
    ended(child);
    drop((command, writer));
    let mut left = String::new();
    reader.read_to_string(&mut left).unwrap();
    assert_eq!(left, "for others");
}

#[test]
fn streams_work_later_if_no_descriptor_is_left() {
    let mut command = part("streams_work_later_if_no_descriptor_is_left", || async {
        let (limit, free) = (getrlimit(Resource::Nofile), File::open("/dev/null")?.as_raw_fd());
        setrlimit(Resource::Nofile, Rlimit { current: Some(free as u64), maximum: limit.maximum })?;
        let (stdin, stdout, mut byte) = (stdin(), stdout(), [0]);
        stdout.write_all(b"lost").await?;
        for error in [stdin.read(&mut byte).await.unwrap_err(), stdout.flush().await.unwrap_err()] {
            assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()), "{error}");
        }
        setrlimit(Resource::Nofile, limit)?;
        let mut rest = [0; 3];
        assert_eq!((stdin.read(&mut byte).await?, stdin.read(&mut rest).await?), (1, 3));
        assert_eq!((&byte, &rest), (b"p", b"ing"));
        stdout.write_all(b"pong").await?;
        stdout.flush().await
    });
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"ping").unwrap();
    assert_eq!(rest(child.stdout.as_mut().unwrap()), b"pong");
    ended(child);
}

#[test]
fn sockets_are_streams_too() {
    let mut command = part("sockets_are_streams_too", echo);
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let theirs = OwnedFd::from(theirs);
    let shared = theirs.try_clone().unwrap();
    let child = command.stdin(theirs.try_clone().unwrap()).stdout(theirs).spawn().unwrap();
    drop(command);
    hear(&mut ours, MARK);
    for message in [&b"ping"[..], b"pong"] {
        ours.write_all(message).unwrap();
        let mut buf = [0; 4];
        ours.read_exact(&mut buf).unwrap();
        assert_eq!(buf, message);
    }
    assert!(!is_nonblocking(&shared));
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    ended(child);
}

#[test]
fn a_full_pipe_lets_other_tasks_run() {
    let mut command = part("a_full_pipe_lets_other_tasks_run", || async {
        let writing = mini::spawn(async { stdout().write_all(&[b'x'; 1 << 20]).await });
        // The parent does not read stdout until this line was written.
        mini::time::sleep(Duration::from_millis(1)).await;
        assert!(!writing.is_finished());
        stderr().write_all(b"still here").await?;
        writing.await.unwrap()?;
        // The future is usually dropped in the middle.
        let _ = poll_with(&mut stdout().write_all(&[b'y'; 1 << 20]), &Counts::new());
        Ok(())
    });
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    hear(child.stderr.as_mut().unwrap(), "still here");
    let said = rest(child.stdout.as_mut().unwrap());
    let first = said.iter().take_while(|&&byte| byte == b'x').count();
    assert_eq!(first, 1 << 20);
    assert!(said[first..].iter().all(|&byte| byte == b'y'));
    ended(child);
}

#[test]
fn nobody_who_listens_is_an_error_and_no_signal() {
    let mut command = part("nobody_who_listens_is_an_error_and_no_signal", || async {
        assert_eq!(stdin().read(&mut [0; 8]).await?, 0, "the parent has closed stdout before");
        let error = stdout().write_all(b"hello?").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        Ok(())
    });
    let mut child = command.spawn().unwrap();
    let mut from = child.stdout.take().unwrap();
    hear(&mut from, MARK);
    drop(from);
    drop(child.stdin.take());
    ended(child);
}

#[test]
fn a_write_that_waits_learns_that_nobody_listens() {
    let mut command = part("a_write_that_waits_learns_that_nobody_listens", || async {
        stderr().write_all(b"begins").await?;
        let error = stdout().write_all(&[b'x'; 1 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        Ok(())
    });
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    hear(child.stderr.as_mut().unwrap(), "begins");
    drop(child.stdout.take());
    ended(child);
}

#[test]
fn a_full_device_is_an_error_of_the_flush() {
    if !cfg!(target_os = "linux") {
        return; // there is no such device
    }
    let mut command = part("a_full_device_is_an_error_of_the_flush", || async {
        let out = stderr();
        out.write_all(b"lost").await?;
        assert_eq!(out.flush().await.unwrap_err().kind(), ErrorKind::StorageFull);
        out.flush().await
    });
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    ended(command.stderr(full).spawn().unwrap());
}

#[test]
fn streams_that_others_have_made_non_blocking_work() {
    let mut command = part("streams_that_others_have_made_non_blocking_work", echo);
    let mut child = command.spawn().unwrap();
    for fd in [child.stdin.as_ref().unwrap().as_fd(), child.stdout.as_ref().unwrap().as_fd()] {
        assert!(!is_nonblocking(fd));
    }
    drop(child.stdin.take());
    let _ = child.wait();

    let ((reader, mut to), (mut from, out)) = (io::pipe().unwrap(), io::pipe().unwrap());
    for fd in [reader.as_fd(), out.as_fd()] {
        rustix::fs::fcntl_setfl(fd, OFlags::NONBLOCK).unwrap();
    }
    let child = command.stdin(reader).stdout(out).spawn().unwrap();
    drop(command);
    let bytes = Words::new(1).take(1 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            to.write_all(&bytes).unwrap();
            drop(to);
        });
        assert!(rest(&mut from) == bytes);
    });
    ended(child);
}

#[test]
fn the_end_of_main_waits_for_what_goes_to_a_file() {
    const TEST: &str = "the_end_of_main_waits_for_what_goes_to_a_file";
    const LENGTH: usize = 60_000;

    async fn write() {
        mini::io::stdout().write_all(&[b'#'; LENGTH]).await.unwrap();
    }

    #[mini::main]
    async fn program() {
        write().await;
    }

    #[mini::main(flavor = "current_thread")]
    async fn program_of_one_thread() {
        write().await;
    }

    #[mini::main(main_thread = true)]
    async fn program_on_the_main_thread() {
        write().await;
    }

    let programs = [program, program_of_one_thread, program_on_the_main_thread];
    if let Some(role) = std::env::var_os(ROLE) {
        programs[role.to_str().unwrap().parse::<usize>().unwrap()]();
        exit(0);
    }
    let path = std::env::temp_dir().join(format!("mini-stdio-end-{}", std::process::id()));
    for round in 0..20 * programs.len() {
        let mut command = own_test(TEST);
        command.env(ROLE, (round % programs.len()).to_string());
        ended(command.stdout(File::create(&path).unwrap()).spawn().unwrap());
        let written = std::fs::read(&path).unwrap();
        assert_eq!(written.iter().filter(|&&byte| byte == b'#').count(), LENGTH);
    }
    std::fs::remove_file(&path).unwrap();
}
