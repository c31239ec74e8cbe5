//! Buffers, devices, launches and threads.
