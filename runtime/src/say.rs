//! How the runtime says something to the person who runs the program: a line on stderr that begins with its name.
//!
//! Used where nobody else would hear of it. A closed stderr is no reason to panic.

use std::fmt;
use std::io::Write;

/// Prints a line to stderr.
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}

#[cold]
pub(crate) fn line(text: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "mini: {text}");
}
