//! The `uopc` command.
fn main() {}
