/*
 * histogram: a kernel in C, written by uopc.
 *
 *   counts  i32[8]     mutable
 *   total   i64[1]     mutable
 *   keys    i32[1000]  read-only
 *
 * histogram_range does the instances begin..end of 0..1000, histogram all of them.
 * Parts may run at the same time, in any order. A mutable buffer overlaps no other.
 *
 * Compile, with gcc or clang and any -O (clang: no -ffp-contract=fast):
 *   cc -std=c11 -O3 -shared -fPIC histogram.c -o histogram.so
 */

#include <stdint.h>

#if defined(__FAST_MATH__) || __FINITE_MATH_ONLY__ || __FLT_EVAL_METHOD__ == 2
#error "floats must follow IEEE 754: compile without -ffast-math"
#endif

/* No product and sum become one operation. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif

void histogram_range(void *const *buffers, const int64_t *variables, int64_t begin, int64_t end) {
    int32_t *counts = buffers[0];
    int64_t *total = buffers[1];
    const int32_t *restrict keys = buffers[2];
    (void)variables;
    for (int64_t i0 = begin; i0 < end; ++i0) {
        const int32_t keys_0 = keys[i0];
        __atomic_fetch_add(&counts[keys_0 & 7], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&total[0LL], (int64_t)keys_0, __ATOMIC_RELAXED);
    }
}

void histogram(int32_t *counts, int64_t *total, const int32_t *restrict keys) {
    void *const buffers[] = {counts, total, (void *)keys};
    histogram_range(buffers, 0, 0, 1000);
}
