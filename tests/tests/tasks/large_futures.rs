//! Without optimisations a value is copied into the frame of each function that passes it on. So the stack that a large
//! future takes on its way into the runtime is counted in copies of it, beside tokio's in the same build.
#![cfg(all(target_os = "linux", debug_assertions))]

use std::cell::Cell;
use std::fs::File;
use std::future::{Future, pending, ready};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::pin::{Pin, pin};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use mini::runtime::Builder;
use mini::task::{CancelToken, Group, JoinSet, coop, shield, unconstrained};
use mini::time::{Instant, deadline, timeout};
use mini_tests::{LIMIT, within};
use tokio_util::sync::CancellationToken;

/// How much of a stack is painted, in bytes.
const PAINTED: usize = 2 << 20;
const PAGE: [u8; 4096] = [0xA5; 4096];

/// Two sizes of a future: what else is on the stack is the same for both.
const SMALL: usize = 32 << 10;
const LARGE: usize = 64 << 10;

const SECOND: Duration = Duration::from_secs(1);

thread_local! {
    /// Where the painted part of this thread's stack begins.
    static BEGIN: Cell<usize> = const { Cell::new(0) };
}

mini::task_local! { static OF_MINI: u8; }
tokio::task_local! { static OF_TOKIO: u8; }

/// Paints the stack below the caller.
#[inline(never)]
fn paint() {
    let paint = [PAGE; PAINTED / PAGE.len()];
    BEGIN.set(black_box(&paint).as_ptr() as usize);
}

/// How many bytes of the stack were used since it was painted, in pages.
#[inline(never)]
fn used() -> usize {
    let mut stack = vec![0; PAINTED];
    File::open("/proc/self/mem").unwrap().read_exact_at(&mut stack, BEGIN.get() as u64).unwrap();
    PAINTED - PAGE.len() * stack.chunks(PAGE.len()).take_while(|page| *page == PAGE).count()
}

/// How many bytes of stack `f` uses on this thread.
fn used_by(f: fn()) -> usize {
    let measure = move || {
        f(); // what is done once only
        paint();
        f();
        used()
    };
    thread::Builder::new().stack_size(2 * PAINTED).spawn(measure).unwrap().join().unwrap()
}

/// How many copies of a future of either size have a place on the stack at the same time.
fn copies(of: impl Fn(fn()) -> usize, [small, large]: [fn(); 2]) -> usize {
    ((of(large) as f64 - of(small) as f64) / (LARGE - SMALL) as f64).round() as usize // none for less than none
}

struct Large<const N: usize>([u8; N]);

impl<const N: usize> Future for Large<N> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        black_box(&self.0);
        Poll::Ready(())
    }
}

fn large<const N: usize>() -> Large<N> {
    Large([0; N])
}

async fn fallible<const N: usize>() -> Result<(), ()> {
    large::<N>().await;
    Ok(())
}

fn job<const N: usize>() -> impl FnOnce() + Send {
    let large = large::<N>();
    move || {
        let large = large;
        black_box(&large);
    }
}

fn of_mini() -> mini::runtime::Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn of_tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// Polls a future that waits for nothing but another poll.
fn poll<F: Future>(future: F) {
    let mut future = pin!(future);
    while future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}

/// How many bytes of stack a blocking thread of mini uses for what `f` spawns.
fn used_by_job_of_mini(f: fn()) -> usize {
    let (send, receive) = channel();
    let mut builder = Builder::new_current_thread();
    builder.thread_stack_size(2 * PAINTED).on_thread_start(paint).on_thread_stop(move || send.send(used()).unwrap());
    builder.build().unwrap().block_on(async { f() });
    receive.recv().unwrap()
}

/// The same of tokio.
fn used_by_job_of_tokio(f: fn()) -> usize {
    let (send, receive) = channel();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.thread_stack_size(2 * PAINTED).on_thread_start(paint).on_thread_stop(move || send.send(used()).unwrap());
    builder.build().unwrap().block_on(async { f() });
    receive.recv().unwrap()
}

/// Measures calls of mini and of tokio with a future of `N` bytes. Returns those for which mini has more copies.
macro_rules! measure {
    ($($name:literal $mini:expr, $tokio:expr;)*) => {
        [$({
            fn mini<const N: usize>() { $mini; }
            fn tokio<const N: usize>() { $tokio; }
            row(
                $name,
                copies(used_by, [mini::<SMALL>, mini::<LARGE>]),
                copies(used_by, [tokio::<SMALL>, tokio::<LARGE>]),
            )
        }),*]
    };
}

/// Says which call copies more often in mini.
fn row(name: &'static str, mini: usize, tokio: usize) -> Option<&'static str> {
    println!("{name:24} mini {mini:2}, tokio {tokio:2}");
    (mini > tokio).then_some(name)
}

/// Bodies, which cannot be generic.
macro_rules! bodies {
    ($($module:ident $size:ident;)*) => {
        $(mod $module {
            #[mini::main(flavor = "current_thread")]
            pub(super) async fn of_mini() {
                super::large::<{ super::$size }>().await;
            }

            #[mini::main]
            pub(super) async fn of_mini_as_task() {
                super::large::<{ super::$size }>().await;
            }

            #[tokio::main(flavor = "current_thread")]
            pub(super) async fn of_tokio() {
                super::large::<{ super::$size }>().await;
            }
        })*
    };
}

bodies! {
    small SMALL;
    large LARGE;
}

fn measure_spawns() -> Vec<Option<&'static str>> {
    use tokio::runtime::Handle;
    use tokio::task::{JoinSet as Set, LocalSet, spawn_blocking, spawn_local};

    let calls = measure! {
        "spawn" of_mini().block_on(async { mini::spawn(large::<N>()).await.unwrap() }),
            of_tokio().block_on(async { tokio::spawn(large::<N>()).await.unwrap() });
        "spawn_local" of_mini().block_on(async { mini::spawn_local(large::<N>()).await.unwrap() }),
            of_tokio().block_on(LocalSet::new().run_until(async { spawn_local(large::<N>()).await.unwrap() }));
        "spawn_blocking" of_mini().block_on(async { mini::spawn_blocking(job::<N>()).await.unwrap() }),
            of_tokio().block_on(async { spawn_blocking(job::<N>()).await.unwrap() });
        "shield" of_mini().block_on(async { shield(SECOND, large::<N>()).await }),
            of_tokio().block_on(async { tokio::spawn(large::<N>()).await.unwrap() });

        "Runtime::spawn" drop(of_mini().spawn(large::<N>())), drop(of_tokio().spawn(large::<N>()));
        "Runtime::spawn_blocking" drop(of_mini().spawn_blocking(job::<N>())),
            drop(of_tokio().spawn_blocking(job::<N>()));
        "Handle::spawn" drop(of_mini().handle().spawn(large::<N>())), drop(of_tokio().handle().spawn(large::<N>()));
        "Handle::spawn_blocking" drop(of_mini().handle().spawn_blocking(job::<N>())),
            drop(of_tokio().handle().spawn_blocking(job::<N>()));

        "Builder::spawn" of_mini().block_on(async { drop(named().spawn(large::<N>())) }),
            of_tokio().block_on(async { drop(tokio::spawn(large::<N>())) });
        "Builder::spawn_on" drop(named().spawn_on(large::<N>(), of_mini().handle())),
            drop(of_tokio().handle().spawn(large::<N>()));
        "Builder::spawn_local" of_mini().block_on(async { drop(named().spawn_local(large::<N>())) }),
            of_tokio().block_on(LocalSet::new().run_until(async { drop(spawn_local(large::<N>())) }));
        "Builder::spawn_blocking" of_mini().block_on(async { drop(named().spawn_blocking(job::<N>())) }),
            of_tokio().block_on(async { drop(spawn_blocking(job::<N>())) });
        "Builder::spawn_blocking_on" drop(named().spawn_blocking_on(job::<N>(), of_mini().handle())),
            drop(of_tokio().handle().spawn_blocking(job::<N>()));

        "JoinSet::spawn" of_mini().block_on(async { drop(JoinSet::new().spawn(large::<N>())) }),
            of_tokio().block_on(async { drop(Set::new().spawn(large::<N>())) });
        "JoinSet::spawn_on" drop(JoinSet::new().spawn_on(large::<N>(), of_mini().handle())),
            drop(Set::new().spawn_on(large::<N>(), of_tokio().handle()));
        "JoinSet::spawn_local" of_mini().block_on(async { drop(JoinSet::new().spawn_local(large::<N>())) }),
            of_tokio().block_on(LocalSet::new().run_until(async { drop(Set::new().spawn_local(large::<N>())) }));
        "JoinSet::spawn_blocking" of_mini().block_on(async { drop(JoinSet::new().spawn_blocking(job::<N>())) }),
            of_tokio().block_on(async { drop(Set::new().spawn_blocking(job::<N>())) });
        "JoinSet::spawn_blocking_on" drop(JoinSet::new().spawn_blocking_on(job::<N>(), of_mini().handle())),
            drop(Set::new().spawn_blocking_on(job::<N>(), of_tokio().handle()));
        "JoinSet::from_iter"
            of_mini().block_on(async {
                [0].map(|_| large::<N>()).into_iter().collect::<JoinSet<_>>().join_all().await
            }),
            of_tokio().block_on(async { [0].map(|_| large::<N>()).into_iter().collect::<Set<_>>().join_all().await });

        "Group::spawn" of_mini().block_on(async { drop(Group::new().spawn(large::<N>())) }),
            of_tokio().block_on(async { drop(Set::new().spawn(large::<N>())) });
        "Group::spawn_named" of_mini().block_on(async { drop(Group::new().spawn_named("", large::<N>())) }),
            of_tokio().block_on(async { drop(Set::new().spawn(large::<N>())) });
        "Group::spawn_any" of_mini().block_on(async { drop(Group::new().spawn_any(large::<N>())) }),
            of_tokio().block_on(async { drop(Set::new().spawn(large::<N>())) });
        "Group::spawn_local" of_mini().block_on(async { drop(Group::new().spawn_local(large::<N>())) }),
            of_tokio().block_on(LocalSet::new().run_until(async { drop(Set::new().spawn_local(large::<N>())) }));
        "Group::spawn_blocking" of_mini().block_on(async { drop(Group::new().spawn_blocking(job::<N>())) }),
            of_tokio().block_on(async { drop(Set::new().spawn_blocking(job::<N>())) });

        "block_on" mini::block_on(large::<N>()), of_tokio().block_on(large::<N>());
        "Runtime::block_on" of_mini().block_on(large::<N>()), of_tokio().block_on(large::<N>());
        "Handle::block_on" of_mini().handle().block_on(large::<N>()), of_tokio().handle().block_on(large::<N>());
    };
    fn job_of_mini<const N: usize>() {
        drop(mini::spawn_blocking(job::<N>()));
    }
    fn job_of_group<const N: usize>() {
        let group = Group::new();
        drop(group.spawn_blocking(job::<N>()));
        std::mem::forget(group); // dropped, it would cancel the job
    }
    fn job_of_tokio<const N: usize>() {
        drop(Handle::current().spawn_blocking(job::<N>()));
    }
    let mini = copies(used_by_job_of_mini, [job_of_mini::<SMALL>, job_of_mini::<LARGE>]);
    let group = copies(used_by_job_of_mini, [job_of_group::<SMALL>, job_of_group::<LARGE>]);
    let tokio = copies(used_by_job_of_tokio, [job_of_tokio::<SMALL>, job_of_tokio::<LARGE>]);
    let main = copies(used_by, [small::of_mini, large::of_mini]);
    let as_task = copies(used_by, [small::of_mini_as_task, large::of_mini_as_task]);
    let main_of_tokio = copies(used_by, [small::of_tokio, large::of_tokio]);
    let others = [
        row("a job", mini, tokio),
        row("a job of a group", group, tokio),
        row("main", main, main_of_tokio),
        row("main as a task", as_task, main_of_tokio),
    ];
    calls.into_iter().chain(others).collect()
}

fn named() -> mini::task::Builder {
    mini::task::Builder::new().name("large")
}

fn measure_futures() -> Vec<Option<&'static str>> {
    let calls = measure! {
        "join!" poll(async { mini::join!(large::<N>(), large::<N>(), ready(())) }),
            poll(async { tokio::join!(large::<N>(), large::<N>(), ready(())) });
        "try_join!" poll(async { mini::try_join!(fallible::<N>(), fallible::<N>()) }),
            poll(async { tokio::try_join!(fallible::<N>(), fallible::<N>()) });
        "race!" poll(async { mini::race!(large::<N>(), large::<N>(), pending()) }),
            poll(async { tokio::select! { x = large::<N>() => x, x = large::<N>() => x, x = pending() => x } });
        "scope!" poll(async { mini::scope!(|_s| large::<N>().await).await }),
            poll(async { tokio::join!(async { large::<N>().await }) });
        "Scope::spawn" poll(mini::scope!(|s| s.spawn(large::<N>()).await)),
            of_tokio().block_on(async { tokio::task::JoinSet::new().spawn(large::<N>()) });
        "timeout" poll(timeout(SECOND, large::<N>())),
            of_tokio().block_on(async { _ = tokio::time::timeout(SECOND, large::<N>()).await });
        "deadline" poll(deadline(Instant::now(), large::<N>())),
            of_tokio().block_on(async { _ = tokio::time::timeout(SECOND, large::<N>()).await });
        "unconstrained" poll(unconstrained(large::<N>())), poll(tokio::task::unconstrained(large::<N>()));
        "cooperative" poll(coop::cooperative(large::<N>())), poll(tokio::task::coop::cooperative(large::<N>()));
        "LocalKey::scope" poll(OF_MINI.scope(0, large::<N>())), poll(OF_TOKIO.scope(0, large::<N>()));
        "CancelToken::run" poll(CancelToken::new().run(large::<N>())),
            poll(CancellationToken::new().run_until_cancelled(large::<N>()));
    };
    calls.into()
}

#[test]
fn a_large_future_is_copied_no_more_often_than_by_tokio() {
    within(LIMIT, || {
        let more: Vec<_> = measure_spawns().into_iter().chain(measure_futures()).flatten().collect();
        assert!(more.is_empty(), "{more:?}");
    });
}
