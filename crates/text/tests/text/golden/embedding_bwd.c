/*
 * embedding_bwd: a kernel in C, written by uopc.
 *
 *   grad_weight  f32[50000, 768]  mutable
 *   grad_emb     f32[4096, 768]   read-only
 *   idx          i32[4096]        read-only
 *
 * embedding_bwd_range does the instances begin..end of 0..4096, embedding_bwd all of them.
 * Parts may run at the same time, in any order. A mutable buffer overlaps no other.
 *
 * Compile, with gcc or clang and any -O (clang: no -ffp-contract=fast):
 *   cc -std=c11 -O3 -shared -fPIC embedding_bwd.c -o embedding_bwd.so
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

/* A comparison may have one outcome only. */
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"

static float atomic_add_f32(float *p, float value) {
    float old, next;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do {
        next = old + value;
    } while (!__atomic_compare_exchange(p, &old, &next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

void embedding_bwd_range(
    void *const *buffers,
    const int64_t *variables,
    int64_t begin,
    int64_t end) {
    float *grad_weight = buffers[0];
    const float *restrict grad_emb = buffers[1];
    const int32_t *restrict idx = buffers[2];
    (void)variables;
    for (int64_t i0 = begin; i0 < end; ++i0) {
        for (int64_t i1 = 0LL; i1 < 768LL; ++i1) {
            const int32_t idx_0 = idx[i0];
            const int32_t v0 = 0 < idx_0 ? idx_0 : 0;
            const int32_t v1 = v0 < 49999 ? v0 : 49999;
            const float grad_emb_0 = grad_emb[i0 * 768LL + i1];
            atomic_add_f32(&grad_weight[(int64_t)v1 * 768LL + i1], grad_emb_0);
        }
    }
}

void embedding_bwd(
    float *grad_weight,
    const float *restrict grad_emb,
    const int32_t *restrict idx) {
    void *const buffers[] = {grad_weight, (void *)grad_emb, (void *)idx};
    embedding_bwd_range(buffers, 0, 0, 4096);
}
