//! A library that spawns, and names no runtime: its tasks run in the one that its caller is in.
//!
//! `Latest` keeps the last answer to a question that it asks again and again, in a task of its own. It calls
//! `mini::spawn`, which finds the runtime of the thread: that of `#[mini::main]` here, of `block_on` or `#[mini::test]`
//! in its tests (`tests/library.rs`). Where callers are outside of any runtime, a library takes a `Handle` instead; the
//! guide's chapter of templates has one.
//!
//! ```text
//! library                       asks three sources for a tenth of a second, and prints the last answers
//! ```

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use mini::task::JoinHandle;
use mini::time::{Duration, interval};

/// The last answer to a question that is asked at intervals, until this is stopped or dropped.
pub(crate) struct Latest<T> {
    answer: Arc<Mutex<Option<T>>>,
    asking: JoinHandle<()>,
}

impl<T: Clone + Send + 'static> Latest<T> {
    /// Begins to ask, at once and then each time that `every` is over. An answer that fails is left out: the one before
    /// stays.
    ///
    /// # Panics
    ///
    /// Outside of a runtime, and if `every` is zero.
    #[track_caller]
    pub(crate) fn start<A, E>(every: Duration, mut ask: impl FnMut() -> A + Send + 'static) -> Self
    where
        A: Future<Output = Result<T, E>> + Send + 'static,
        E: Send,
    {
        let answer = Arc::new(Mutex::new(None));
        let (latest, mut beat) = (answer.clone(), interval(every));
        let asking = mini::spawn(async move {
            loop {
                beat.tick().await;
                if let Ok(answer) = ask().await {
                    *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                }
            }
        });
        Self { answer, asking }
    }

    /// `None` before the first answer.
    pub(crate) fn get(&self) -> Option<T> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops asking. When this is done, `ask` has been dropped, and the question in flight given up.
    pub(crate) async fn stop(mut self) {
        self.asking.abort();
        let _ = (&mut self.asking).await;
    }
}

impl<T> Drop for Latest<T> {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

#[mini::main]
async fn main() -> std::io::Result<()> {
    mini_examples::refuse_more(&std::env::args().skip(1).collect::<Vec<_>>(), "usage: library")?;
    let sources: Vec<_> = [("fast", 5), ("slow", 30), ("never", 10_000)]
        .map(|(name, ms)| {
            let mut asked = 0;
            let latest = Latest::start(Duration::from_millis(10), move || {
                asked += 1;
                async move {
                    mini::time::sleep(Duration::from_millis(ms)).await; // as a server far away
                    std::io::Result::Ok(asked)
                }
            });
            (name, latest)
        })
        .into();
    mini::time::sleep(Duration::from_millis(100)).await;
    for (name, latest) in sources {
        match latest.get() {
            Some(count) => println!("{name}: answer number {count}"),
            None => println!("{name}: no answer yet"),
        }
        latest.stop().await;
    }
    Ok(())
}
