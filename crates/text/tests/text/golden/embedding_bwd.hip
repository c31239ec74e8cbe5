/*
 * embedding_bwd: a kernel in HIP, written by uopc.
 *
 *   grad_weight  f32[50000, 768]  mutable
 *   grad_emb     f32[4096, 768]   read-only
 *   idx          i32[4096]        read-only
 *
 * A mutable buffer overlaps no other.
 *
 * Launch exactly 4096 x 3 x 1 blocks of 256 x 1 x 1 work-items; with a zero in the grid
 * there is nothing to launch.
 *
 * Compile, for gfx90a, gfx942, gfx1100 or gfx1201, with clang 19 or later:
 *   clang -x hip --cuda-device-only --no-gpu-bundle-output -O3 -nogpuinc -nogpulib \
 *     --offload-arch=gfx1100 embedding_bwd.hip -o embedding_bwd.hsaco
 *
 * Floats are added atomically to grad_weight: coarse-grained memory, as hipMalloc gives.
 * -munsafe-fp-atomics then lets the compiler use one instruction where the chip has it,
 * which may take subnormals for zero, instead of a loop.
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

extern "C" __global__ void __launch_bounds__(256) embedding_bwd(
    float *grad_weight,
    const float *__restrict__ grad_emb,
    const int *__restrict__ idx) {
    const long bx = (long)__builtin_amdgcn_workgroup_id_x();
    const int by = (int)__builtin_amdgcn_workgroup_id_y();
    const int tx = (int)__builtin_amdgcn_workitem_id_x();
    const long v0 = (long)(by * 256 + tx);
    const int idx_0 = idx[bx];
    const int v1 = 0 < idx_0 ? idx_0 : 0;
    const int v2 = v1 < 49999 ? v1 : 49999;
    const float grad_emb_0 = grad_emb[bx * 768LL + v0];
    __hip_atomic_fetch_add(&grad_weight[(long)v2 * 768LL + v0], grad_emb_0, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
