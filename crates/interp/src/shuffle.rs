//! Orders to visit `0..len` in.

/// SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA
/// 2014), with the constants of Vigna's `splitmix64.c`.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..len`; which is slightly likelier does not matter here.
    fn below(&mut self, len: u64) -> u64 {
        self.next() % len
    }
}

/// A walk through `0..len` that visits each number once.
///
/// A shuffled one goes round in steps that share no divisor with `len`: not every permutation, but
/// without memory, however long the range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    len: i128,
    left: i128,
    step: i128,
    at: i128,
}

impl Walk {
    /// The numbers in ascending order.
    pub(crate) fn ascending(len: i128) -> Walk {
        Walk { len, left: len, step: 1, at: 0 }
    }

    /// The numbers in an order that `random` chooses.
    pub(crate) fn shuffled(len: i128, random: &mut Random) -> Walk {
        match u64::try_from(len) {
            Ok(n @ 2..) => {
                let step = loop {
                    let step = 1 + random.below(n - 1);
                    if gcd(step, n) == 1 {
                        break step;
                    }
                };
                Walk { len, left: len, step: step.into(), at: random.below(n).into() }
            }
            // Nothing to choose, or longer than anyone will wait for.
            _ => Walk::ascending(len),
        }
    }
}

impl Iterator for Walk {
    type Item = i128;

    fn next(&mut self) -> Option<i128> {
        if self.left <= 0 {
            return None;
        }
        let value = self.at;
        self.left -= 1;
        self.at += self.step;
        if self.at >= self.len {
            self.at -= self.len;
        }
        Some(value)
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_each_number_once() {
        let mut random = Random(7);
        for len in -1..50 {
            let mut seen: Vec<i128> = Walk::shuffled(len, &mut random).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "length {len}");
        }
    }

    #[test]
    fn seeds_differ() {
        let order = |seed| Walk::shuffled(100, &mut Random(seed)).collect::<Vec<_>>();
        assert_ne!(order(0), order(1));
        assert_eq!(order(5), order(5));
    }
}
