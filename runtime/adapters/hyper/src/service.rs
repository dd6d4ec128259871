//! The kinds of service that can be served: hyper's and tower's.
//!
//! The hard part: both are traits of others, and a type may implement either, so one impl for each would overlap. Each
//! has a parameter of its own, which users never write: the compiler finds the impl that fits.
//!
//! Rejected: two functions, one for each kind (a newcomer does not know which kind a router is).

use std::error::Error;

use hyper::body::{Body, Incoming};
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::service::TowerToHyperService;

/// The error of a service or a connection.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A service of hyper as a server needs it. Implemented for all that fit; see [`IntoService`].
pub trait HttpService:
    Service<Request<Incoming>, Response = Response<Self::Body>, Error: Into<Failure>, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
    /// The body of its answers.
    type Body: Body<Data: Send, Error: Into<Failure>> + Send + 'static;
}

impl<S, B> HttpService for S
where
    S: Service<Request<Incoming>, Response = Response<B>, Error: Into<Failure>, Future: Send + 'static>,
    S: Clone + Send + 'static,
    B: Body<Data: Send, Error: Into<Failure>> + Send + 'static,
{
    type Body = B;
}

/// What [`serve`](crate::serve) serves: a service of hyper (`hyper::service::service_fn`), or one of tower, such as
/// axum's `Router`. It is cloned for each connection.
///
/// `Kind` is [`Hyper`] or [`Tower`], and found by the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an HTTP service",
    label = "neither a service of hyper nor one of tower",
    note = "a service takes a `hyper::Request<hyper::body::Incoming>` and returns a `hyper::Response`; the service, \
            its futures and its bodies are `Send` and `'static`, and the service is `Clone`",
    note = "for a function use `hyper::service::service_fn`, for an axum `Router` with a state `with_state`"
)]
pub trait IntoService<Kind> {
    /// The service of hyper that it becomes.
    type Service: HttpService;

    /// Makes it a service of hyper.
    fn into_service(self) -> Self::Service;
}

/// Marks a service of hyper.
#[derive(Debug)]
pub enum Hyper {}

/// Marks a service of tower.
#[derive(Debug)]
pub enum Tower {}

impl<S: HttpService> IntoService<Hyper> for S {
    type Service = S;

    fn into_service(self) -> S {
        self
    }
}

impl<S> IntoService<Tower> for S
where
    S: tower_service::Service<Request<Incoming>>,
    TowerToHyperService<S>: HttpService,
{
    type Service = TowerToHyperService<S>;

    fn into_service(self) -> Self::Service {
        TowerToHyperService::new(self)
    }
}
