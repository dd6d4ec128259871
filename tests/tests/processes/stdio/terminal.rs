//! Terminals: opened anew they are the same, or are left to a thread.

use std::os::unix::fs::OpenOptionsExt;

use rustix::process::setsid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::*;

/// Both ends of a new terminal: the master, and the path of the other one.
fn terminal() -> (File, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    (File::from(master), name.into_string().unwrap())
}

/// The end at `path`, without becoming the terminal of this process.
fn open(path: &str) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).unwrap()
}

#[test]
fn a_terminal_gives_lines_and_stays_as_it_is() {
    let mut command = part("terminal::a_terminal_gives_lines_and_stays_as_it_is", || async {
        let (stdin, mut buf) = (stdin(), [0; 64]);
        if cfg!(target_os = "linux") {
            assert!(format!("{stdin:?}").contains("by_thread: false"));
        }
        for line in ["first\n", "second\n"] {
            stdout().write_all(b"?").await?;
            let length = stdin.read(&mut buf).await?;
            assert_eq!(&buf[..length], line.as_bytes());
        }
        stdout().write_all(b"?").await?;
        assert_eq!(stdin.read(&mut buf).await?, 0);
        mini::spawn(async move { stdin.read(&mut buf).await });
        mini::task::yield_now().await;
        Ok(())
    });
    let (mut terminal, path) = terminal();
    let slave = open(&path);
    let shared = slave.try_clone().unwrap();
    let mut child = command.stdin(slave).spawn().unwrap();
    drop(command);
    for typed in ["first\n", "second\n", "\x04"] {
        hear(child.stdout.as_mut().unwrap(), "?");
        terminal.write_all(typed.as_bytes()).unwrap();
    }
    assert!(!is_nonblocking(&shared));
    ended(child);
}

/// Opened anew it would be the master of a terminal that nobody has.
#[test]
fn the_master_of_a_terminal_stays_that_of_its_terminal() {
    let mut command = part("terminal::the_master_of_a_terminal_stays_that_of_its_terminal", || async {
        let (stdin, stdout, mut buf) = (stdin(), stdout(), [0; 4]);
        stdout.write_all(b"question\n").await?;
        stdout.flush().await?;
        assert_eq!((stdin.read(&mut buf).await?, &buf), (4, b"ping"));
        Ok(())
    });
    let ((input, typed), (output, shown)) = (terminal(), terminal());
    let (mut typed, mut shown) = (open(&typed), open(&shown));
    let child = command.stdin(input).stdout(output).spawn().unwrap();
    drop(command);
    hear(&mut shown, "question\n");
    typed.write_all(b"ping").unwrap();
    ended(child);
}

/// Opened anew, `/dev/tty` would be the terminal of the session that asks.
#[test]
#[cfg(target_os = "linux")]
fn the_terminal_of_another_session_is_no_other_one() {
    /// The path of the child's terminal, and that of the terminal of the child's child.
    const TERMINALS: [&str; 2] = ["MINI_STDIO_TERMINAL", "MINI_STDIO_NEXT_TERMINAL"];

    let mut command = part("terminal::the_terminal_of_another_session_is_no_other_one", || async {
        let [own, next] = TERMINALS.map(|name| std::env::var(name).ok());
        setsid()?;
        // The first that a session opens is its own.
        let _own = OpenOptions::new().read(true).write(true).open(own.unwrap())?;
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let Some(next) = next else {
            let stdout = stdout();
            stdout.write_all(b"hello").await?;
            return stdout.flush().await;
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args().skip(1)).env(TERMINALS[0], next).env_remove(TERMINALS[1]);
        assert!(command.stdout(tty).status()?.success());
        Ok(())
    });
    let ((mut ours, path), (_theirs, next)) = (terminal(), terminal());
    ended(command.env(TERMINALS[0], path).env(TERMINALS[1], next).spawn().unwrap());
    hear(&mut ours, "<<<hello");
}
