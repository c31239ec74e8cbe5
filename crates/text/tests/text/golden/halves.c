/*
 * halves: a kernel in C, written by uopc.
 *
 *   out   bf16[1000]  mutable
 *   sums  f16[1000]   mutable
 *   x     bf16[1000]  read-only
 *   w     f16[1000]   read-only
 *
 * halves_range does the instances begin..end of 0..1000, halves all of them.
 * Parts may run at the same time, in any order. A mutable buffer overlaps no other.
 *
 * Compile, with gcc or clang and any -O (clang: no -ffp-contract=fast):
 *   cc -std=c11 -O3 -shared -fPIC halves.c -o halves.so
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

static float f32_from_bits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t f32_to_bits(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float f16_to_f32(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t rest = (uint32_t)(half & 0x7fff) << 13;
    const float scaled = f32_from_bits(rest) * 5192296858534827628530496329220096.0f;
    const uint32_t bits = f32_to_bits(scaled);
    return f32_from_bits(sign | ((half & 0x7c00) == 0x7c00 ? rest | 0x7f800000U : bits));
}

static float bf16_to_f32(uint16_t half) {
    return f32_from_bits((uint32_t)half << 16);
}

/* Rounds to nearest even. */
static uint16_t f32_to_f16(float value) {
    const uint32_t sign = f32_to_bits(value) >> 16 & 0x8000U;
    const uint32_t size = f32_to_bits(value) & 0x7fffffffU;
    uint32_t half = (size - 0x37fff001U + (size >> 13 & 1U)) >> 13;
    if (size < 0x38800000U) {
        half = f32_to_bits(f32_from_bits(size) + 0.5f) - 0x3f000000U;
    } else if (size >= 0x47800000U) {
        half = size > 0x7f800000U ? 0x7e00U : 0x7c00U;
    }
    return (uint16_t)(sign | half);
}

/* Rounds to nearest even. */
static uint16_t f32_to_bf16(float value) {
    const uint32_t bits = f32_to_bits(value);
    if (value != value) {
        return (uint16_t)(bits >> 16 | 0x40U);
    }
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

void halves_range(void *const *buffers, const int64_t *variables, int64_t begin, int64_t end) {
    uint16_t *restrict out = buffers[0];
    uint16_t *restrict sums = buffers[1];
    const uint16_t *restrict x = buffers[2];
    const uint16_t *restrict w = buffers[3];
    (void)variables;
    for (int64_t i0 = begin; i0 < end; ++i0) {
        const uint16_t x_0 = x[i0];
        const uint16_t w_0 = w[i0];
        const float v0 = bf16_to_f32(x_0);
        const float v1 = f16_to_f32(w_0);
        const bool v2 = 0.0f < v0;
        const uint16_t v3 = v2 ? f32_to_bf16(v0 * v1) : 0x3dcd;
        out[i0] = v3;
        const uint16_t v4 = v2 ? f32_to_f16(v0 + v1) : 0x3800;
        sums[i0] = v4;
    }
}

void halves(
    uint16_t *restrict out,
    uint16_t *restrict sums,
    const uint16_t *restrict x,
    const uint16_t *restrict w) {
    void *const buffers[] = {out, sums, (void *)x, (void *)w};
    halves_range(buffers, 0, 0, 1000);
}
