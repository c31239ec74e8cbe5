/*
 * registers: a kernel in HIP, written by uopc.
 *
 *   out    f32[10]     mutable
 *   x      f32[10, 5]  read-only
 *   w      f32[5]      read-only
 *   spare  f32[10]     read-only
 *
 * A mutable buffer overlaps no other.
 *
 * Launch exactly 10 x 1 x 1 blocks of 1 x 1 x 1 work-items; with a zero in the grid
 * there is nothing to launch.
 *
 * Compile, for gfx90a, gfx942, gfx1100 or gfx1201, with clang 19 or later:
 *   clang -x hip --cuda-device-only --no-gpu-bundle-output -O3 -nogpuinc -nogpulib \
 *     --offload-arch=gfx1100 registers.hip -o registers.hsaco
 */

#if defined(__FAST_MATH__) || __FINITE_MATH_ONLY__ || __FLT_EVAL_METHOD__ == 2
#error "floats must follow IEEE 754: compile without -ffast-math"
#endif
static_assert(sizeof(long) == 8, "64-bit integers are spelled long");

/* No product and sum become one operation. */
#pragma clang fp contract(off)

/* As the HIP headers have them. */
#ifndef __global__
#define __global__ __attribute__((global))
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#endif

extern "C" __global__ void __launch_bounds__(1) registers(
    float *__restrict__ out,
    const float *__restrict__ x,
    const float *__restrict__ w,
    const float *__restrict__ spare) {
    (void)spare;
    float r0[1] = {0};
    float r1[5] = {0};
    int r2[2] = {0};
    (void)r2;
    const long bx = (long)__builtin_amdgcn_workgroup_id_x();
    r0[0] = 0.0f;
    r2[0] = 5;
    const int v0 = (int)bx * 5;
    for (int i0 = 0; i0 < 5; ++i0) {
        const float x_0 = x[v0 + i0];
        const float v1 = 0.0f < x_0 ? x_0 : 0.0f;
        r1[i0] = v1;
    }
    for (int i0 = 0; i0 < 5; ++i0) {
        const float r1_0 = r1[i0];
        const float w_0 = w[i0];
        const float r0_0 = r0[0];
        r0[0] = r0_0 + r1_0 * w_0;
    }
    const float r0_1 = r0[0];
    out[bx] = r0_1;
}
