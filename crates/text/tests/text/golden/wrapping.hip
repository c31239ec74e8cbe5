/*
 * wrapping: a kernel in HIP, written by uopc.
 *
 *   bytes   u8[1000]   mutable
 *   words   u64[1000]  mutable
 *   scaled  u64[1000]  mutable
 *   x       u8[1000]   read-only
 *   scale   f64[1000]  read-only
 *
 * A mutable buffer overlaps no other.
 *
 * Launch exactly 1000 x 1 x 1 blocks of 1 x 1 x 1 work-items; with a zero in the grid
 * there is nothing to launch.
 *
 * Compile, for gfx90a, gfx942, gfx1100 or gfx1201, with clang 19 or later:
 *   clang -x hip --cuda-device-only --no-gpu-bundle-output -O3 -nogpuinc -nogpulib \
 *     --offload-arch=gfx1100 wrapping.hip -o wrapping.hsaco
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

/* Truncates and saturates; NaN gives 0. */
static __device__ unsigned long f64_to_u64(double x) {
    if (0.0 <= x && x < 18446744073709551616.0) {
        return (unsigned long)x;
    }
    return x < 0.0 ? 0ULL : 0.0 < x ? 18446744073709551615ULL : 0;
}

extern "C" __global__ void __launch_bounds__(1) wrapping(
    unsigned char *__restrict__ bytes,
    unsigned long *__restrict__ words,
    unsigned long *__restrict__ scaled,
    const unsigned char *__restrict__ x,
    const double *__restrict__ scale) {
    const long bx = (long)__builtin_amdgcn_workgroup_id_x();
    const unsigned char x_0 = x[bx];
    const unsigned char v0 = (unsigned char)((unsigned)x_0 * 3U - (unsigned)x_0 * (unsigned)x_0);
    const unsigned char v1 = 200 < v0 ? v0 : 200;
    bytes[bx] = v1;
    const unsigned long words_0 = words[bx];
    const unsigned long v2 = words_0 * 15074714826142052245ULL - (unsigned long)x_0;
    words[bx] = v2;
    const double scale_0 = scale[bx];
    scaled[bx] = f64_to_u64((double)v2 * scale_0);
}
