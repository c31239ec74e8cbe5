/*
 * saxpy: a kernel in C, written by uopc.
 *
 *   y     f32[1000]   mutable
 *   x     f32[1000]   read-only
 *   mask  bool[1000]  read-only
 *
 * saxpy_range does the instances begin..end of 0..1000, saxpy all of them.
 * Parts may run at the same time, in any order. A mutable buffer overlaps no other.
 *
 * Compile, with gcc or clang and any -O (clang: no -ffp-contract=fast):
 *   cc -std=c11 -O3 -shared -fPIC saxpy.c -o saxpy.so
 */

#include <stdbool.h>
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

void saxpy_range(void *const *buffers, const int64_t *variables, int64_t begin, int64_t end) {
    float *restrict y = buffers[0];
    const float *restrict x = buffers[1];
    const bool *restrict mask = buffers[2];
    (void)variables;
    for (int64_t i0 = begin; i0 < end; ++i0) {
        if ((i0 & 1LL) == 0LL) {
            const bool mask_0 = mask[i0];
            const float x_0 = mask_0 ? x[i0] : -0.0f;
            const float y_0 = y[i0];
            y[i0] = 2.5f * x_0 + y_0;
        }
    }
}

void saxpy(float *restrict y, const float *restrict x, const bool *restrict mask) {
    void *const buffers[] = {y, (void *)x, (void *)mask};
    saxpy_range(buffers, 0, 0, 1000);
}
