//! Seeds: the failures that they find, the faults that a failure needs, and its report.

#![cfg(feature = "sim")]

mod arguments;
mod chaos;
mod planted;
mod reports;
