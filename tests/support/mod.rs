//! What the tests of several crates share.

pub(crate) mod cc;
pub(crate) mod hip;
pub(crate) mod tools;
