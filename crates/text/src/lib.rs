//! C and HIP source from a Program.
