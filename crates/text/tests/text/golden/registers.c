/*
 * registers: a kernel in C, written by uopc.
 *
 *   out    f32[10]     mutable
 *   x      f32[10, 5]  read-only
 *   w      f32[5]      read-only
 *   spare  f32[10]     read-only
 *
 * registers_range does the instances begin..end of 0..10, registers all of them.
 * Parts may run at the same time, in any order. A mutable buffer overlaps no other.
 *
 * Compile, with gcc or clang and any -O (clang: no -ffp-contract=fast):
 *   cc -std=c11 -O3 -shared -fPIC registers.c -o registers.so
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

void registers_range(void *const *buffers, const int64_t *variables, int64_t begin, int64_t end) {
    float *restrict out = buffers[0];
    const float *restrict x = buffers[1];
    const float *restrict w = buffers[2];
    (void)variables;
    float r0[1] = {0};
    float r1[5] = {0};
    int32_t r2[2] = {0};
    (void)r2;
    for (int64_t i0 = begin; i0 < end; ++i0) {
        r0[0] = 0.0f;
        r2[0] = 5;
        const int32_t v0 = (int32_t)i0 * 5;
        for (int32_t i1 = 0; i1 < 5; ++i1) {
            const float x_0 = x[v0 + i1];
            const float v1 = 0.0f < x_0 ? x_0 : 0.0f;
            r1[i1] = v1;
        }
        for (int32_t i1 = 0; i1 < 5; ++i1) {
            const float r1_0 = r1[i1];
            const float w_0 = w[i1];
            const float r0_0 = r0[0];
            r0[0] = r0_0 + r1_0 * w_0;
        }
        const float r0_1 = r0[0];
        out[i0] = r0_1;
    }
}

void registers(
    float *restrict out,
    const float *restrict x,
    const float *restrict w,
    const float *restrict spare) {
    void *const buffers[] = {out, (void *)x, (void *)w, (void *)spare};
    registers_range(buffers, 0, 0, 10);
}
