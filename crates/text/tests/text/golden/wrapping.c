/*
 * wrapping: a kernel in C, written by uopc.
 *
 *   bytes   u8[1000]   mutable
 *   words   u64[1000]  mutable
 *   scaled  u64[1000]  mutable
 *   x       u8[1000]   read-only
 *   scale   f64[1000]  read-only
 *
 * wrapping_range does the instances begin..end of 0..1000, wrapping all of them.
 * Parts may run at the same time, in any order. A mutable buffer overlaps no other.
 *
 * Compile, with gcc or clang and any -O (clang: no -ffp-contract=fast):
 *   cc -std=c11 -O3 -shared -fPIC wrapping.c -o wrapping.so
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

/* A comparison may have one outcome only. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"

/* Truncates and saturates; NaN gives 0. */
static uint64_t f64_to_u64(double x) {
    if (0.0 <= x && x < 18446744073709551616.0) {
        return (uint64_t)x;
    }
    return x < 0.0 ? 0ULL : 0.0 < x ? 18446744073709551615ULL : 0;
}

void wrapping_range(void *const *buffers, const int64_t *variables, int64_t begin, int64_t end) {
    uint8_t *restrict bytes = buffers[0];
    uint64_t *restrict words = buffers[1];
    uint64_t *restrict scaled = buffers[2];
    const uint8_t *restrict x = buffers[3];
    const double *restrict scale = buffers[4];
    (void)variables;
    for (int64_t i0 = begin; i0 < end; ++i0) {
        const uint8_t x_0 = x[i0];
        const uint8_t v0 = (uint8_t)((uint32_t)x_0 * 3U - (uint32_t)x_0 * (uint32_t)x_0);
        const uint8_t v1 = 200 < v0 ? v0 : 200;
        bytes[i0] = v1;
        const uint64_t words_0 = words[i0];
        const uint64_t v2 = words_0 * 15074714826142052245ULL - (uint64_t)x_0;
        words[i0] = v2;
        const double scale_0 = scale[i0];
        scaled[i0] = f64_to_u64((double)v2 * scale_0);
    }
}

void wrapping(
    uint8_t *restrict bytes,
    uint64_t *restrict words,
    uint64_t *restrict scaled,
    const uint8_t *restrict x,
    const double *restrict scale) {
    void *const buffers[] = {bytes, words, scaled, (void *)x, (void *)scale};
    wrapping_range(buffers, 0, 0, 1000);
}
