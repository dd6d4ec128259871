//! The program as a group: the root of all others, and its token.

use std::panic::Location;
use std::sync::{Arc, OnceLock};

use super::super::CancelToken;
use super::GRACE;
use super::node::Node;

static ROOT: OnceLock<Arc<Node>> = OnceLock::new();

/// The group of the program.
pub(in crate::task) fn root() -> &'static Arc<Node> {
    ROOT.get_or_init(|| Node::root(CancelToken::new().name("program"), Location::caller(), GRACE))
}

/// The token of the program, whose children are the tokens of all groups.
///
/// Under [`#[mini::main(grace = "10s")]`](crate::main) it is cancelled when the program is asked to end by Ctrl-C or
/// SIGTERM, and when `main` has returned; the program may cancel it too, to end itself. Without `grace` nothing cancels
/// it but the program.
///
/// # Examples
///
/// ```
/// use mini::task::{Group, Reason};
///
/// let group = Group::new();
/// assert!(mini::shutdown().cancel(Reason::Requested));
/// assert_eq!(group.token().reason(), Some(Reason::Requested));
/// ```
#[must_use = "this is the token; it is not cancelled by the call"]
pub fn shutdown() -> CancelToken {
    root().token.clone()
}
