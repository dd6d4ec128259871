//! The futures that wait for the next task of a set to end; made by its methods.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::JoinSet;
use crate::task::{Id, JoinError};

pub(super) fn without_id<T>(output: Result<(Id, T), JoinError>) -> Result<T, JoinError> {
    output.map(|(_, output)| output)
}

/// Future of [`JoinSet::join_next`]: resolves to `Option<Result<T, JoinError>>`.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct JoinNext<'a, T>(pub(super) JoinNextWithId<'a, T>);

impl<T> Future for JoinNext<'_, T> {
    type Output = Option<Result<T, JoinError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|next| next.map(without_id))
    }
}

/// Future of [`JoinSet::join_next_with_id`]: resolves to `Option<Result<(Id, T), JoinError>>`.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct JoinNextWithId<'a, T> {
    pub(super) set: &'a mut JoinSet<T>,
    pub(super) location: &'static Location<'static>,
}

impl<T> Future for JoinNextWithId<'_, T> {
    type Output = Option<Result<(Id, T), JoinError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let location = self.location;
        self.set.poll_next(cx, location)
    }
}
