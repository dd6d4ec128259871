//! One event loop per core: where main futures and tasks run, how the cores end together, and how the kernel spreads
//! connections over them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use mini::net::{TcpListener, TcpSocket, TcpStream};
use mini::runtime::{Builder, Handle, PerCore, RuntimeFlavor, worker_index};
use mini_tests::{Counts, LIMIT, Token, caught, oneshot, until, within};

fn cores(count: usize) -> PerCore {
    Builder::new_per_core().worker_threads(count).shutdown_grace(LIMIT * 10).build().unwrap()
}

#[test]
fn each_core_runs_its_future_on_its_own_thread() {
    within(LIMIT, || {
        let caller = thread::current().id();
        let cores = cores(3);
        assert_eq!(cores.num_workers(), 3);
        let mut threads = cores
            .run(|index| async move {
                assert_eq!(worker_index(), Some(index));
                assert_eq!(thread::current().name(), Some(format!("mini-{index}").as_str()));
                assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::CurrentThread);
                let here = thread::current().id();
                assert_eq!(mini::spawn(async { thread::current().id() }).await.unwrap(), here);
                assert_eq!(mini::spawn_blocking(worker_index).await.unwrap(), None);
                here
            })
            .unwrap();
        threads.push(caller);
        threads.sort_by_key(|id| format!("{id:?}"));
        threads.dedup();
        assert_eq!(threads.len(), 4, "three threads, none of them the caller's");
        assert_eq!(worker_index(), None);
    });
}

#[test]
fn futures_borrow_and_need_not_be_send() {
    within(LIMIT, || {
        let words = ["a".to_owned(), "bc".to_owned()];
        let lengths = cores(2).run(|index| {
            let shared = Rc::new(RefCell::new(words[index].as_str()));
            async move {
                let inside = shared.clone();
                let _ = inside;
                mini::task::yield_now().await;
                shared.borrow().len()
            }
        });
        assert_eq!(lengths.unwrap(), [1, 2]);
    });
}

#[test]
fn a_core_that_is_done_serves_its_tasks_until_the_last_one_is() {
    within(LIMIT, || {
        let cores = cores(2);
        let first = cores.handle(0).clone();
        let is_done = Arc::new(AtomicUsize::new(0));
        let outputs = cores.run(|index| {
            let (first, is_done) = (first.clone(), is_done.clone());
            async move {
                if index == 0 {
                    is_done.store(1, SeqCst);
                    return Some(0);
                }
                until(|| is_done.load(SeqCst) == 1).await;
                let (send, receive) = oneshot();
                drop(first.spawn(async move {
                    mini::time::sleep(Duration::from_micros(10)).await;
                    send.send(worker_index());
                }));
                receive.await.unwrap()
            }
        });
        assert_eq!(outputs.unwrap(), [Some(0), Some(0)]);
    });
}

#[test]
fn tasks_that_are_left_are_dropped_on_their_threads() {
    struct Home(thread::ThreadId, Arc<AtomicUsize>);
    impl Drop for Home {
        fn drop(&mut self) {
            assert_eq!(self.0, thread::current().id());
            self.1.fetch_add(1, SeqCst);
        }
    }
    within(LIMIT, || {
        let dropped = Arc::new(AtomicUsize::new(0));
        let seen = &dropped;
        cores(3)
            .run(|_| async move {
                let home = Home(thread::current().id(), seen.clone());
                drop(mini::spawn_local(async move {
                    let _home = home;
                    std::future::pending::<()>().await
                }));
                mini::task::yield_now().await;
            })
            .unwrap();
        assert_eq!(dropped.load(SeqCst), 3);
    });
}

#[test]
fn the_first_panic_ends_all_and_goes_on_in_run() {
    within(LIMIT, || {
        let counts = Counts::new();
        let others = AtomicUsize::new(0);
        let caught = caught(|| {
            cores(3).run(|index| {
                let (token, others) = (Token::new(&counts), &others);
                async move {
                    let _token = token;
                    if index == 1 {
                        until(|| others.load(SeqCst) == 2).await;
                        panic!("core one is broken");
                    }
                    others.fetch_add(1, SeqCst);
                    std::future::pending::<()>().await
                }
            })
        });
        assert_eq!(caught.message, "", "it is resumed, not raised again");
        assert_eq!(counts.drops(), 3);
    });
}

#[test]
fn the_payload_of_the_panic_is_passed_on() {
    within(LIMIT, || {
        let run = || cores(2).run(|index| async move { assert!(index != 1, "not one") });
        let payload = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(mini_tests::text_of(&*payload), "not one");
    });
}

#[test]
fn a_panic_while_the_future_is_made_counts_too() {
    within(LIMIT, || {
        let make = |index: usize| {
            assert!(index != 0, "cannot be made");
            std::future::pending::<()>()
        };
        let payload = std::panic::catch_unwind(|| cores(2).run(make)).unwrap_err();
        assert_eq!(mini_tests::text_of(&*payload), "cannot be made");
    });
}

#[test]
fn hooks_and_names_are_those_of_the_builder() {
    within(LIMIT, || {
        let log = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let log = log.clone();
            move || log.lock().unwrap().push((what, thread::current().name().unwrap().to_owned()))
        };
        let mut builder = Builder::new_per_core();
        builder.worker_threads(2).thread_name("serve").thread_stack_size(1 << 20);
        builder.on_thread_start(note("start")).on_thread_stop(note("stop"));
        builder.build().unwrap().run(|_| async {}).unwrap();
        let mut log = log.lock().unwrap().clone();
        log.sort();
        let expected = [("start", "serve-0"), ("start", "serve-1"), ("stop", "serve-0"), ("stop", "serve-1")];
        assert_eq!(log, expected.map(|(what, name)| (what, name.to_owned())));
    });
}

#[cfg(all(target_os = "linux", not(mini_kqueue_shim)))]
#[test]
fn a_pinned_core_stays_on_one_processor() {
    within(LIMIT, || {
        let cores = Builder::new_per_core().worker_threads(3).pin_cores(true).build().unwrap();
        let free = thread::available_parallelism().unwrap();
        let allowed = cores.run(|_| async { thread::available_parallelism().unwrap().get() }).unwrap();
        assert_eq!(allowed, [1, 1, 1]);
        assert_eq!(thread::available_parallelism().unwrap(), free, "the caller is left alone");
    });
}

/// An address that is taken for listeners which share it.
fn shared_address() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.set_reuseport(true).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    (socket, addr)
}

#[test]
fn the_kernel_spreads_connections_over_the_listeners() {
    const CLIENTS: usize = 64;
    within(LIMIT, || {
        let (_kept, addr) = shared_address();
        let (served, listening) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let per_core = cores(2)
            .run(|index| {
                let (served, listening) = (&served, &listening);
                async move {
                    let listener = TcpListener::bind_reuse_port(addr).await.unwrap();
                    listening.fetch_add(1, SeqCst);
                    until(|| listening.load(SeqCst) == 2).await;
                    if index == 0 {
                        for _ in 0..CLIENTS {
                            drop(mini::spawn(async move {
                                let client = TcpStream::connect(addr).await.unwrap();
                                client.write_all(b"x").await.unwrap();
                                let mut echo = [0];
                                client.read_exact(&mut echo).await.unwrap();
                            }));
                        }
                    }
                    let mut mine = 0;
                    loop {
                        let accept = mini::time::timeout(Duration::from_millis(1), listener.accept());
                        if let Ok(accepted) = accept.await {
                            let (stream, _) = accepted.unwrap();
                            let mut byte = [0];
                            stream.read_exact(&mut byte).await.unwrap();
                            stream.write_all(&byte).await.unwrap();
                            mine += 1;
                            served.fetch_add(1, SeqCst);
                        }
                        if served.load(SeqCst) == CLIENTS {
                            return mine;
                        }
                    }
                }
            })
            .unwrap();
        assert_eq!(per_core.iter().sum::<usize>(), CLIENTS);
    });
}

#[test]
fn a_port_that_is_not_shared_is_refused() {
    within(LIMIT, || {
        mini::block_on(async {
            let alone = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let error = TcpListener::bind_reuse_port(alone.local_addr().unwrap()).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
        });
    });
}

#[test]
fn a_mistake_is_told() {
    within(LIMIT, || {
        let error = Builder::new_per_core().worker_threads(0).build().unwrap_err();
        assert!(error.to_string().contains("worker_threads(0)"), "{error}");
        let error = Builder::new_per_core().thread_name("a\0b").build().unwrap_err();
        assert!(error.to_string().contains("thread_name"), "{error}");
        let missing = caught(|| cores(1).handle(1).clone());
        assert_eq!(missing.message, "PerCore::handle(1): there are 1 cores");
        let inside = caught(|| mini::block_on(async { cores(1).run(|_| async {}) }));
        assert!(inside.message.starts_with("PerCore::run inside a task"), "{}", inside.message);
        assert_eq!(inside.file, file!());
        drop(cores(2)); // never run
    });
}
