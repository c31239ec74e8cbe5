/*
 * halves: a kernel in HIP, written by uopc.
 *
 *   out   bf16[1000]  mutable
 *   sums  f16[1000]   mutable
 *   x     bf16[1000]  read-only
 *   w     f16[1000]   read-only
 *
 * A mutable buffer overlaps no other.
 *
 * Launch exactly 1000 x 1 x 1 blocks of 1 x 1 x 1 work-items; with a zero in the grid
 * there is nothing to launch.
 *
 * Compile, for gfx90a, gfx942, gfx1100 or gfx1201, with clang 19 or later:
 *   clang -x hip --cuda-device-only --no-gpu-bundle-output -O3 -nogpuinc -nogpulib \
 *     --offload-arch=gfx1100 halves.hip -o halves.hsaco
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

static __device__ unsigned f32_to_bits(float value) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

static __device__ float bf16_to_f32(unsigned short half) {
    return f32_from_bits((unsigned)half << 16);
}

/* Rounds to nearest even. */
static __device__ unsigned short f32_to_bf16(float value) {
    const unsigned bits = f32_to_bits(value);
    if (value != value) {
        return (unsigned short)(bits >> 16 | 0x40U);
    }
    return (unsigned short)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

extern "C" __global__ void __launch_bounds__(1) halves(
    unsigned short *__restrict__ out,
    _Float16 *__restrict__ sums,
    const unsigned short *__restrict__ x,
    const _Float16 *__restrict__ w) {
    const long bx = (long)__builtin_amdgcn_workgroup_id_x();
    const unsigned short x_0 = x[bx];
    const _Float16 w_0 = w[bx];
    const float v0 = bf16_to_f32(x_0);
    const float v1 = (float)w_0;
    const bool v2 = 0.0f < v0;
    const unsigned short v3 = v2 ? f32_to_bf16(v0 * v1) : 0x3dcd;
    out[bx] = v3;
    const _Float16 v4 = v2 ? (_Float16)(v0 + v1) : (_Float16)0.5f;
    sums[bx] = v4;
}
