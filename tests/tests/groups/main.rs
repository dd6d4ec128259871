//! Groups, sets, scopes and shields: several tasks that belong together.

mod group;
mod join_set;
mod scopes;
mod shield;
