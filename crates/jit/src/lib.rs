//! Machine code from a Program, through Cranelift.
