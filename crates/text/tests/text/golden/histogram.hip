/*
 * histogram: a kernel in HIP, written by uopc.
 *
 *   counts  i32[8]     mutable
 *   total   i64[1]     mutable
 *   keys    i32[1000]  read-only
 *
 * A mutable buffer overlaps no other.
 *
 * Launch exactly 1000 x 1 x 1 blocks of 1 x 1 x 1 work-items; with a zero in the grid
 * there is nothing to launch.
 *
 * Compile, for gfx90a, gfx942, gfx1100 or gfx1201, with clang 19 or later:
 *   clang -x hip --cuda-device-only --no-gpu-bundle-output -O3 -nogpuinc -nogpulib \
 *     --offload-arch=gfx1100 histogram.hip -o histogram.hsaco
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

extern "C" __global__ void __launch_bounds__(1) histogram(
    int *counts,
    long *total,
    const int *__restrict__ keys) {
    const long bx = (long)__builtin_amdgcn_workgroup_id_x();
    const int keys_0 = keys[bx];
    __hip_atomic_fetch_add(&counts[keys_0 & 7], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __hip_atomic_fetch_add(&total[0LL], (long)keys_0, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
