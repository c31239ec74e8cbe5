/*
 * saxpy: a kernel in HIP, written by uopc.
 *
 *   y     f32[1000]   mutable
 *   x     f32[1000]   read-only
 *   mask  bool[1000]  read-only
 *
 * A mutable buffer overlaps no other.
 *
 * Launch exactly 1000 x 1 x 1 blocks of 1 x 1 x 1 work-items; with a zero in the grid
 * there is nothing to launch.
 *
 * Compile, for gfx90a, gfx942, gfx1100 or gfx1201, with clang 19 or later:
 *   clang -x hip --cuda-device-only --no-gpu-bundle-output -O3 -nogpuinc -nogpulib \
 *     --offload-arch=gfx1100 saxpy.hip -o saxpy.hsaco
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
#ifndef __launch_bounds__
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#endif

extern "C" __global__ void __launch_bounds__(1) saxpy(
    float *__restrict__ y,
    const float *__restrict__ x,
    const bool *__restrict__ mask) {
    const long bx = (long)__builtin_amdgcn_workgroup_id_x();
    if ((bx & 1LL) == 0LL) {
        const bool mask_0 = mask[bx];
        const float x_0 = mask_0 ? x[bx] : -0.0f;
        const float y_0 = y[bx];
        y[bx] = 2.5f * x_0 + y_0;
    }
}
