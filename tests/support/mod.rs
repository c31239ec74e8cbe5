//! What several tests share; none uses all of it.
#![allow(dead_code)]

pub(crate) mod cc;
pub(crate) mod edges;
pub(crate) mod hip;
pub(crate) mod tools;
