//! A future that is dropped at one of its awaits, as a `race!`, a timeout or an abort might do it.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use mini_context::sim::inject;
use mini_context::{Wait, mark_notes, notes_since};
use pin_project_lite::pin_project;

use super::sites;

pin_project! {
    /// Future of [`Current::cancel_at_random`](super::Current::cancel_at_random): resolves to `Option<F::Output>`,
    /// `None` if the future was dropped.
    #[must_use = "futures do nothing unless awaited"]
    pub struct CancelAtRandom<F> {
        #[pin]
        future: Option<F>,
        probability: f64,
        location: &'static Location<'static>,
    }
}

impl<F> CancelAtRandom<F> {
    #[track_caller]
    pub(super) fn new(probability: f64, future: F) -> Self {
        sites::check(probability);
        Self { future: Some(future), probability, location: Location::caller() }
    }
}

impl<F: Future> Future for CancelAtRandom<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let future = this.future.as_mut().as_pin_mut().expect("a future is not polled after it was ready");
        let mark = mark_notes();
        let output = match future.poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => {
                if sites::ask(this.location, |site| site.draw(*this.probability)) != Some(true) {
                    return Poll::Pending;
                }
                let wait = Wait::of(notes_since(mark)).map(Wait::location);
                if !inject(|| told(this.location, wait)) {
                    return Poll::Pending;
                }
                None
            }
        };
        this.future.set(None);
        Poll::Ready(output)
    }
}

fn told(location: &Location<'_>, wait: Option<&Location<'_>>) -> String {
    let wait = wait.map_or(String::new(), |wait| format!(", which waits in {},", sites::shown(wait)));
    format!("cancels the future of {}{wait}", sites::shown(location))
}

impl<F> fmt::Debug for CancelAtRandom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { probability, location, .. } = self;
        f.debug_struct("CancelAtRandom").field("probability", probability).field("location", location).finish()
    }
}
