//! Sockets: TCP, UDP and Unix, their options, the lookup of hosts, and what stays open.

#[cfg(feature = "sim")]
mod fd_passing;
#[cfg(feature = "sim")]
mod flow;
mod lifetimes;
mod open_files;
#[cfg(feature = "sim")]
mod options;
#[cfg(feature = "sim")]
mod resolve;
mod security;
#[cfg(feature = "sim")]
mod seqpacket;
#[cfg(feature = "sim")]
mod split;
#[cfg(feature = "sim")]
mod tcp;
#[cfg(feature = "sim")]
mod udp;
#[cfg(feature = "sim")]
mod unix;
