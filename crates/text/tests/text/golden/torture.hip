/*
 * torture: a kernel in HIP, written by uopc.
 *
 *   ints    i32[10]  mutable
 *   floats  f32[4]   mutable
 *   bools   bool[4]  mutable
 *   longs   i64[3]   mutable
 *   p       i32[4]   read-only
 *   q       f32[3]   read-only
 *   r       bool[3]  read-only
 *
 * A mutable buffer overlaps no other.
 *
 * Launch exactly 1 x 1 x 1 blocks of 1 x 1 x 1 work-items; with a zero in the grid
 * there is nothing to launch.
 *
 * Compile, for gfx90a, gfx942, gfx1100 or gfx1201, with clang 19 or later:
 *   clang -x hip --cuda-device-only --no-gpu-bundle-output -O3 -nogpuinc -nogpulib \
 *     --offload-arch=gfx1100 torture.hip -o torture.hsaco
 */

#if defined(__FAST_MATH__) || __FINITE_MATH_ONLY__ || __FLT_EVAL_METHOD__ == 2
#error "floats must follow IEEE 754: compile without -ffast-math"
#endif
static_assert(sizeof(long) == 8, "64-bit integers are spelled long");

/* No product and sum become one operation. */
#pragma clang fp contract(off)

/* A comparison may have one outcome only. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"

/* As the HIP headers have them. */
#ifndef __global__
#define __global__ __attribute__((global))
#endif
#ifndef __device__
#define __device__ __attribute__((device))
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#endif

static __device__ float f32_from_bits(unsigned bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* Truncates and saturates; NaN gives 0. */
static __device__ long f32_to_i64(float x) {
    if (-9223372036854775808.0f <= x && x < 9223372036854775808.0f) {
        return (long)x;
    }
    return x < 0.0f ? (-9223372036854775807LL - 1) : 0.0f < x ? 9223372036854775807LL : 0;
}

extern "C" __global__ void __launch_bounds__(1) torture(
    int *__restrict__ ints,
    float *__restrict__ floats,
    bool *__restrict__ bools,
    long *__restrict__ longs,
    const int *__restrict__ p,
    const float *__restrict__ q,
    const bool *__restrict__ r) {
    const int p_0 = p[0];
    const int p_1 = p[1];
    const int p_2 = p[2];
    const int p_3 = p[3];
    const float q_0 = q[0];
    const float q_1 = q[1];
    const float q_2 = q[2];
    const bool r_0 = r[0];
    const bool r_1 = r[1];
    const bool r_2 = r[2];
    ints[0] = p_0 - (p_1 - p_2);
    ints[1] = p_0 - p_1 - p_2;
    ints[2] = (p_0 + p_1) * -(-p_2);
    const int v0 = (int)(((unsigned)p_0 + (unsigned)p_1) * (0U - (0U - (unsigned)p_2)));
    ints[3] = v0;
    ints[4] = (p_0 & p_1) | (int)((unsigned)p_2 + 1U);
    ints[5] = (p_0 | p_1) & (p_2 & p_3);
    const int v1 = r_1 ? p_0 : p_1;
    const int v2 = r_2 ? p_2 : p_3;
    const int v3 = r_0 ? v1 : v2;
    ints[6] = v3;
    ints[7] = (-2147483647 - 1);
    const int v4 = (int)((0U - (unsigned)(-2147483647 - 1)) * (unsigned)p_0 - 1U);
    ints[8] = v4;
    ints[9] = (int)((unsigned)(int)(p_0 < p_1) + (unsigned)p_0);
    floats[0] = q_0 - (q_1 - q_2);
    floats[1] = -(q_0 * q_1) - -q_2;
    floats[2] = q_0 * q_1 + q_2;
    const float v5 = r_0 ? -__builtin_inff() : f32_from_bits(0xffc01234U);
    floats[3] = v5;
    bools[0] = (p_0 < p_1) == (p_2 < p_3);
    bools[1] = (r_0 && (r_1 || r_2)) || (q_0 < q_1 && r_1);
    bools[2] = (q_0 < q_1) != r_1;
    bools[3] = (p_0 & 4) == 8;
    const long v6 = (long)((unsigned long)(-9223372036854775807LL - 1) - (unsigned long)(long)p_0);
    longs[0] = v6;
    longs[1] = (long)((long)p_0 < 5000000000LL);
    longs[2] = f32_to_i64(q_0 * q_1);
}
