//! The oracle: runs a UOp graph as written and checks every access.
