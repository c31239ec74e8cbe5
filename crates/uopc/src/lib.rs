//! A tiny compiler for compute kernels.
