//! What rustc says to users of `#[mini::main]` and `#[mini::test]`: each program in `ui/fail` must be refused with
//! exactly the text beside it, each in `ui/pass` must build and run to its end.
//!
//! After a wanted change of a message, `TRYBUILD=overwrite cargo test -p mini-tests --test project ui::` writes
//! the texts anew.

#[test]
fn mistakes_are_reported_where_they_stand() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}

#[test]
fn what_is_allowed_builds_and_runs() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}
