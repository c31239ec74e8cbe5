//! The kernels that the process has compiled last, for all its devices and threads.
//!
//! A kernel is found by all that its code depends on, compared in full. The lock is not held while
//! something compiles: threads that compile the same kernel at once all do so, what the first to
//! finish made is kept, and all of them get that. What fails is not kept.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::compiled::Executable;

/// The most compiled kernels that the process keeps for when they are compiled again. One more
/// replaces the one that was asked for the longest ago; its code is freed once no
/// [`Compiled`](crate::Compiled) holds it.
pub const CACHED_KERNELS: usize = 256;

/// All that code depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The name of the device.
    pub(crate) device: &'static str,
    /// The compiler, its options and the machine that it compiles for.
    pub(crate) target: &'static str,
    /// The canonical text of the kernel, which is complete.
    pub(crate) kernel: String,
}

/// The executable of `key`, made now if there is none, and whether there was one.
///
/// # Errors
///
/// Those of `make`.
pub(crate) fn get_or_make<E>(
    key: Key,
    make: impl FnOnce() -> Result<Executable, E>,
) -> Result<(Arc<Executable>, bool), E> {
    let found = lock().get(&key);
    if let Some(found) = found {
        return Ok((found, true));
    }
    let made = Arc::new(make()?);
    // What nobody needs any more is freed at the end of the function, when the lock is free again.
    let (kept, _unneeded) = lock().insert(key, made);
    Ok((kept, false))
}

fn lock() -> MutexGuard<'static, Cache> {
    static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);
    // Nothing panics between two changes that belong together.
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Cache {
    /// At most [`CACHED_KERNELS`].
    kernels: HashMap<Key, Kept>,
    /// How many times something was asked for.
    clock: u64,
}

struct Kept {
    executable: Arc<Executable>,
    /// The time at which it was last asked for, unlike all others.
    used: u64,
}

impl Cache {
    fn get(&mut self, key: &Key) -> Option<Arc<Executable>> {
        self.clock += 1;
        let kept = self.kernels.get_mut(key)?;
        kept.used = self.clock;
        Some(kept.executable.clone())
    }

    /// Keeps `made`, if nothing is kept for `key`. Returns what is kept now, and what is not, or no
    /// longer.
    fn insert(
        &mut self,
        key: Key,
        made: Arc<Executable>,
    ) -> (Arc<Executable>, Option<Arc<Executable>>) {
        if let Some(first) = self.get(&key) {
            return (first, Some(made));
        }
        let mut oldest = None;
        if self.kernels.len() >= CACHED_KERNELS {
            // Looking at all of them is nothing next to the compilation that came before.
            let key = self.kernels.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key);
            oldest = key.cloned().and_then(|key| self.kernels.remove(&key));
        }
        self.kernels.insert(key, Kept { executable: made.clone(), used: self.clock });
        (made, oldest.map(|kept| kept.executable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::Code;

    fn key(number: usize) -> Key {
        Key { device: "test", target: "", kernel: number.to_string() }
    }

    fn executable() -> Arc<Executable> {
        let code = Code::Source(String::new());
        Arc::new(Executable {
            name: String::new(),
            params: Vec::new(),
            variables: Vec::new(),
            code,
        })
    }

    #[test]
    fn what_was_asked_for_the_longest_ago_goes() {
        let mut cache = Cache::default();
        for i in 0..CACHED_KERNELS {
            assert!(cache.insert(key(i), executable()).1.is_none());
        }
        assert!(cache.get(&key(0)).is_some());
        for i in CACHED_KERNELS..2 * CACHED_KERNELS - 1 {
            assert!(cache.insert(key(i), executable()).1.is_some());
            assert_eq!(cache.kernels.len(), CACHED_KERNELS);
        }
        assert!(cache.get(&key(0)).is_some());
        assert!((1..CACHED_KERNELS).all(|i| cache.get(&key(i)).is_none()));
    }

    #[test]
    fn the_first_to_finish_is_kept() {
        let mut cache = Cache::default();
        let (first, second) = (executable(), executable());
        cache.insert(key(0), first.clone());
        let (kept, unneeded) = cache.insert(key(0), second.clone());
        assert!(Arc::ptr_eq(&kept, &first));
        assert!(unneeded.is_some_and(|unneeded| Arc::ptr_eq(&unneeded, &second)));
    }

    #[test]
    fn each_part_of_the_key_counts() {
        let mut cache = Cache::default();
        cache.insert(key(0), executable());
        assert!(cache.get(&Key { device: "other", ..key(0) }).is_none());
        assert!(cache.get(&Key { target: "other", ..key(0) }).is_none());
        assert!(cache.get(&key(1)).is_none());
        assert!(cache.get(&key(0)).is_some());
    }
}
