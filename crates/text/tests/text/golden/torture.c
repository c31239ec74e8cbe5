/*
 * torture: a kernel in C, written by uopc.
 *
 *   ints    i32[10]  mutable
 *   floats  f32[4]   mutable
 *   bools   bool[4]  mutable
 *   longs   i64[3]   mutable
 *   p       i32[4]   read-only
 *   q       f32[3]   read-only
 *   r       bool[3]  read-only
 *
 * torture_range does the instances begin..end of 0..1, torture all of them.
 * Parts may run at the same time, in any order. A mutable buffer overlaps no other.
 *
 * Compile, with gcc or clang and any -O (clang: no -ffp-contract=fast):
 *   cc -std=c11 -O3 -shared -fPIC torture.c -o torture.so
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

static float f32_from_bits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* Truncates and saturates; NaN gives 0. */
static int64_t f32_to_i64(float x) {
    if (-9223372036854775808.0f <= x && x < 9223372036854775808.0f) {
        return (int64_t)x;
    }
    return x < 0.0f ? (-9223372036854775807LL - 1) : 0.0f < x ? 9223372036854775807LL : 0;
}

void torture_range(void *const *buffers, const int64_t *variables, int64_t begin, int64_t end) {
    int32_t *restrict ints = buffers[0];
    float *restrict floats = buffers[1];
    bool *restrict bools = buffers[2];
    int64_t *restrict longs = buffers[3];
    const int32_t *restrict p = buffers[4];
    const float *restrict q = buffers[5];
    const bool *restrict r = buffers[6];
    (void)variables;
    (void)begin;
    (void)end;
    const int32_t p_0 = p[0];
    const int32_t p_1 = p[1];
    const int32_t p_2 = p[2];
    const int32_t p_3 = p[3];
    const float q_0 = q[0];
    const float q_1 = q[1];
    const float q_2 = q[2];
    const bool r_0 = r[0];
    const bool r_1 = r[1];
    const bool r_2 = r[2];
    ints[0] = p_0 - (p_1 - p_2);
    ints[1] = p_0 - p_1 - p_2;
    ints[2] = (p_0 + p_1) * -(-p_2);
    const int32_t v0 = (int32_t)(((uint32_t)p_0 + (uint32_t)p_1) * (0U - (0U - (uint32_t)p_2)));
    ints[3] = v0;
    ints[4] = (p_0 & p_1) | (int32_t)((uint32_t)p_2 + 1U);
    ints[5] = (p_0 | p_1) & (p_2 & p_3);
    const int32_t v1 = r_1 ? p_0 : p_1;
    const int32_t v2 = r_2 ? p_2 : p_3;
    const int32_t v3 = r_0 ? v1 : v2;
    ints[6] = v3;
    ints[7] = (-2147483647 - 1);
    const int32_t v4 = (int32_t)((0U - (uint32_t)(-2147483647 - 1)) * (uint32_t)p_0);
    ints[8] = (int32_t)((uint32_t)v4 - 1U);
    ints[9] = (int32_t)((uint32_t)(int32_t)(p_0 < p_1) + (uint32_t)p_0);
    floats[0] = q_0 - (q_1 - q_2);
    floats[1] = -(q_0 * q_1) - -q_2;
    floats[2] = q_0 * q_1 + q_2;
    const float v5 = r_0 ? -__builtin_inff() : f32_from_bits(0xffc01234U);
    floats[3] = v5;
    bools[0] = (p_0 < p_1) == (p_2 < p_3);
    bools[1] = (r_0 && (r_1 || r_2)) || (q_0 < q_1 && r_1);
    bools[2] = (q_0 < q_1) != r_1;
    bools[3] = (p_0 & 4) == 8;
    const int64_t v6 = (int64_t)((uint64_t)(-9223372036854775807LL - 1) - (uint64_t)(int64_t)p_0);
    longs[0] = v6;
    longs[1] = (int64_t)((int64_t)p_0 < 5000000000LL);
    longs[2] = f32_to_i64(q_0 * q_1);
}

void torture(
    int32_t *restrict ints,
    float *restrict floats,
    bool *restrict bools,
    int64_t *restrict longs,
    const int32_t *restrict p,
    const float *restrict q,
    const bool *restrict r) {
    void *const buffers[] = {ints, floats, bools, longs, (void *)p, (void *)q, (void *)r};
    torture_range(buffers, 0, 0, 1);
}
