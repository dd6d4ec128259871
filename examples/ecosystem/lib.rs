//! What the examples and tests of this package share.
