//! The threads of the process.
//!
//! There is one pool. It starts with the first launch that needs it, and is replaced by a larger
//! one when a launch asks for more threads than it has; launches that are under way finish on the
//! one they began with. Threads without work sleep. Launches that run at the same time share the
//! threads, so that together they have no more than the largest of them asked for.

use std::num::NonZero;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The most threads that one launch uses; more are taken for as many.
pub const MAX_THREADS: usize = 256;

/// How many threads a launch uses if it does not say: the cores that the process may use, as seen
/// when this is first asked.
pub(crate) fn default_threads() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
}

/// Calls `body` on `threads` contiguous slices of `0..extent` of near-equal size, at the same time:
/// the first on this thread, the others on the pool's. There are never more slices than
/// [`MAX_THREADS`], nor than instances. Returns how many there were.
///
/// # Errors
///
/// What the system says if it has no more threads; nothing has been done then.
pub(crate) fn for_slices(
    extent: u64,
    threads: usize,
    body: impl Fn(Range<u64>) + Sync,
) -> Result<usize, String> {
    let slices = (threads.min(MAX_THREADS) as u64).min(extent);
    match slices {
        0 => {}
        1 => body(0..extent),
        _ => pool(slices as usize - 1)?.in_place_scope(|scope| {
            for i in 1..slices {
                let body = &body;
                scope.spawn(move |_| body(slice(extent, slices, i)));
            }
            body(slice(extent, slices, 0));
        }),
    }
    Ok(slices as usize)
}

/// Slice `i` of `slices`.
fn slice(extent: u64, slices: u64, i: u64) -> Range<u64> {
    // At most `extent`.
    let start = |i: u64| (u128::from(extent) * u128::from(i) / u128::from(slices)) as u64;
    start(i)..start(i + 1)
}

/// The pool, with `threads` threads or more.
fn pool(threads: usize) -> Result<Arc<ThreadPool>, String> {
    static POOL: Mutex<Option<Arc<ThreadPool>>> = Mutex::new(None);
    // It is replaced whole, so a panic while it was locked has left it as it was.
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pool.as_ref().filter(|pool| pool.current_num_threads() >= threads) {
        return Ok(pool.clone());
    }
    let size = threads.max(default_threads() - 1);
    let builder = ThreadPoolBuilder::new().num_threads(size);
    let larger = builder.thread_name(|i| format!("uopc-{i}")).build();
    let larger = Arc::new(larger.map_err(|error| error.to_string())?);
    *pool = Some(larger.clone());
    Ok(larger)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    fn slices(extent: u64, threads: usize) -> Vec<Range<u64>> {
        let slices = Mutex::new(Vec::new());
        let count = for_slices(extent, threads, |slice| {
            slices.lock().expect("no slice panics").push(slice);
        });
        let mut slices = slices.into_inner().expect("no slice panics");
        slices.sort_by_key(|slice| slice.start);
        assert_eq!(count, Ok(slices.len()));
        slices
    }

    #[test]
    fn slices_cover_the_range_and_are_of_near_equal_size() {
        for extent in [0, 1, 2, 7, 8, 1000, u64::MAX] {
            for threads in [1, 2, 3, 7, 64, 1000] {
                let slices = slices(extent, threads);
                let count = (threads.min(MAX_THREADS) as u64).min(extent);
                assert_eq!(slices.len() as u64, count);
                let mut end = 0;
                for slice in slices {
                    assert_eq!(slice.start, end);
                    let length = slice.end - slice.start;
                    assert!(length == extent / count || length == extent / count + 1);
                    end = slice.end;
                }
                assert_eq!(end, extent);
            }
        }
    }

    /// Every slice waits for all others, which would never end if some came after others.
    #[test]
    fn slices_run_at_the_same_time_however_few_the_cores() {
        for threads in [2, 7, 3, 32] {
            let barrier = Barrier::new(threads);
            let ran = Mutex::new(HashSet::new());
            let count = for_slices(1000, threads, |_| {
                barrier.wait();
                ran.lock().expect("no slice panics").insert(thread::current().id());
            });
            assert_eq!(count, Ok(threads));
            let ran = ran.into_inner().expect("no slice panics");
            assert_eq!(ran.len(), threads);
            assert!(ran.contains(&thread::current().id()));
        }
    }

    #[test]
    fn one_thread_is_the_callers() {
        let caller = thread::current().id();
        let count = for_slices(1000, 1, |_| assert_eq!(thread::current().id(), caller));
        assert_eq!(count, Ok(1));
    }
}
