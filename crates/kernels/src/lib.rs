//! The kernel library: zero, embedding and its backward.
