//! A web server in a line for the runtime [mini]: services of hyper and of tower, such as axum's `Router`, over
//! HTTP/1 and HTTP/2.
//!
//! ```no_run
//! use axum::{Router, routing::get};
//! use mini::net::TcpListener;
//! use mini::signal::termination;
//!
//! #[mini::main]
//! async fn main() -> std::io::Result<()> {
//!     let router = Router::new().route("/", get(async || "hello"));
//!     let listener = TcpListener::bind("127.0.0.1:8080").await?;
//!     mini_hyper::serve(listener, router).with_graceful_shutdown(termination()).await?;
//!     Ok(())
//! }
//! ```
//!
//! [`serve`] accepts connections, limits their number and slow clients ([`Limits`]), survives a lack of descriptors,
//! and answers the requests that have begun before it ends. [`serve_connection`] serves one connection, for servers
//! with a loop of their own. Neither does TLS (see [`Serve::handshake`] and [`FuturesIo`]) or writes a log
//! (tower-http's `TraceLayer` does).
//!
//! The feature `client` adds a client: `client()` returns hyper-util's `Client`, which pools its connections, and
//! `Connector` opens them.

#[cfg(feature = "client")]
mod client;
mod connection;
mod futures_io;
mod heads;
mod limits;
mod paced;
mod serve;
mod service;

#[cfg(feature = "client")]
pub use client::{ClientStream, Connector, client, client_builder};
pub use connection::serve_connection;
pub use futures_io::FuturesIo;
#[cfg(feature = "client")]
#[doc(no_inline)]
pub use hyper_util::client::legacy::Client;
pub use limits::Limits;
pub use paced::Paced;
pub use serve::{Handshake, Plain, Report, Serve, Serving, serve};
pub use service::{Failure, HttpService, Hyper, IntoService, Tower};
