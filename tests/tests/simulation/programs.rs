//! Hosts of a simulation as programs: how they end, are asked to end, and fail.

use std::io;
use std::time::Duration;

use mini::net::{TcpListener, TcpStream};
use mini::signal::unix::SignalKind;
use mini::sim::{Failure, Sim, current};
use mini::task::{Group, Reason};
use mini::time::sleep;

const SECOND: Duration = Duration::from_secs(1);

fn failure(result: Result<(), Failure>) -> String {
    result.expect_err("the simulation fails").to_string()
}

#[test]
fn a_host_that_panics_ends_the_simulation_before_others_suffer_from_it() {
    let text = failure(Sim::new(1).run(async {
        current().host("server", || async {
            sleep(SECOND).await;
            panic!("the root cause");
            #[allow(unreachable_code)]
            io::Result::Ok(())
        });
        while TcpStream::connect("server:1").await.is_err() {
            sleep(SECOND).await;
        }
    }));
    assert!(
        text.contains("on host server: ") && text.contains("the root cause") && !text.contains("has taken"),
        "{text}"
    );
}

#[test]
fn a_task_that_panics_unseen_ends_the_simulation_and_its_host_is_told() {
    let text = failure(Sim::new(1).run(async {
        current().host("server", || async {
            let listener = TcpListener::bind("0.0.0.0:1").await?;
            loop {
                let (stream, _) = listener.accept().await?;
                mini::spawn(async move {
                    let _stream = stream;
                    panic!("the bug of the server");
                });
            }
            #[allow(unreachable_code)]
            io::Result::Ok(())
        });
        current().settle().await;
        for _ in 0.. {
            let stream = TcpStream::connect("server:1").await.unwrap();
            let _ = stream.read(&mut [0; 1]).await;
        }
    }));
    assert!(text.contains("on host server: ") && text.contains("the bug of the server"), "{text}");
    assert_eq!(text.matches("the bug of the server").count(), 1, "{text}");
}

#[test]
fn a_panic_that_somebody_awaits_ends_nothing() {
    let run = Sim::new(1).run(async {
        let task = mini::spawn(async { panic!("seen") });
        sleep(SECOND).await;
        assert!(task.await.unwrap_err().is_panic());
    });
    run.unwrap();
}

#[test]
fn a_client_whose_handle_is_gone_fails_the_simulation_by_an_error_and_a_task_does_not() {
    let text = failure(Sim::new(1).run(async {
        drop(current().client("client", async { Err::<(), _>(io::Error::other("no answer")) }));
        sleep(SECOND).await;
    }));
    assert!(text.contains("on host client: ") && text.contains("no answer"), "{text}");
    let run = Sim::new(1).run(async {
        drop(mini::spawn(async { Err::<(), _>(io::Error::other("hung up")) }));
        sleep(SECOND).await;
    });
    run.unwrap();
}

#[mini::test(sim, seeds = 10)]
async fn a_host_whose_program_has_ended_is_not_up_until_it_is_started_again() {
    let sim = current();
    sim.host("short", || sleep(SECOND));
    let client = sim.client("client", sleep(SECOND));
    assert!(sim.is_up("short") && sim.is_up("client"));
    sleep(2 * SECOND).await;
    assert!(!sim.is_up("short") && !sim.is_up("client"));
    sim.restart("short");
    assert!(sim.is_up("short"));
    client.await.unwrap();
}

#[test]
fn a_client_cannot_be_restarted() {
    let text = failure(Sim::new(1).run(async {
        let sim = current();
        sim.client("client", async {}).await.unwrap();
        sim.restart("client");
    }));
    assert!(text.contains("a client runs once"), "{text}");
}

/// The token of one seed, host or start is not that of another.
#[mini::test(sim, seeds = 10)]
async fn each_host_is_a_program_that_a_signal_asks_to_end() {
    let sim = current();
    assert!(!mini::shutdown().is_cancelled());
    let run = || async {
        let token = mini::shutdown();
        assert!(!token.is_cancelled(), "it is another program than the one that has ended");
        let group = Group::new();
        group.spawn(async {});
        token.cancelled().await;
        assert_eq!((token.reason(), group.token().reason()), (Some(Reason::Signal), Some(Reason::Signal)));
        group.shutdown(Reason::Shutdown).await;
    };
    sim.host("one", run);
    sim.host("other", run);
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        sim.settle().await;
        sim.signal("one", kind);
        sleep(SECOND).await;
        assert!(!sim.is_up("one") && sim.is_up("other"));
        sim.restart("one");
    }
    sim.signal("test", SignalKind::hangup());
    assert!(!mini::shutdown().is_cancelled(), "SIGHUP is no request to end");
    assert!(mini::shutdown().cancel(Reason::Requested));
}

#[test]
fn errors_that_nobody_awaits_are_told_if_the_simulation_fails() {
    let text = failure(Sim::new(1).run(async {
        current().host("server", || async {
            for number in 0..5 {
                drop(mini::spawn(async move { Err::<(), _>(io::Error::other(format!("error {number}"))) }));
                mini::task::yield_now().await;
            }
            std::future::pending::<()>().await;
        });
        std::future::pending::<()>().await;
    }));
    assert!(text.contains("\n  5 errors that no task awaited, the last of them:\n    on host server: task "), "{text}");
    assert_eq!(text.matches(" ended with an error: error ").count(), 3, "{text}");
}

#[test]
fn a_panic_is_told_with_the_host_of_its_task_whoever_drops_the_handle() {
    let text = failure(Sim::new(1).run(async {
        let sim = current();
        let client = sim.client("client", async {
            sleep(SECOND).await;
            panic!("the client's");
        });
        sleep(2 * SECOND).await;
        drop(client);
        sleep(SECOND).await;
    }));
    assert!(text.starts_with("seed 1: on host client: task ") && text.contains("the client's"), "{text}");
}
