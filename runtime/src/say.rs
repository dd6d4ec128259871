//! How the runtime says something to the person who runs the program: a line on stderr that begins with its name.
//!
//! Used where nobody else would hear of it. A closed stderr is no reason to panic.

/// Prints a line to stderr.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "mini: {}", format_args!($($text)*));
    }};
}
