//! Whether the output of a task, of whatever type, is an error.
//!
//! Rust has no way to ask that of a type parameter. But a type has a name and a value a variant, which is enough.

use std::any::type_name;
use std::mem::discriminant;

/// Whether `output` is the `Err` of a `Result`.
#[inline]
pub fn is_err<T>(output: &T) -> bool {
    // The first is known when this is compiled. The declaration of `Result` has `Ok` first, and discriminants can be
    // compared and shown, not read.
    type_name::<T>().starts_with("core::result::Result<") && format!("{:?}", discriminant(output)) == "Discriminant(1)"
}
