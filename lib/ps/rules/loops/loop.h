// What the loops of update rules are written with. One source of them is compiled for each
// instruction set of processors (kernel_loop.h), and for accelerators (devices/cuda/kernels).
// SPDX-License-Identifier: Apache-2.0
//
// Both give the same bits: products and sums are not fused, square roots and quotients are rounded
// correctly, and whatever is neither (powers, exponentials) comes with the Step.
#pragma once
#include "ps/rules/step.h"

#ifdef __CUDACC__
#define DTRAIN_INLINE static __device__ __forceinline__
#define DTRAIN_MEMBER __device__ __forceinline__
#else
#define DTRAIN_INLINE [[gnu::always_inline]] inline
#define DTRAIN_MEMBER DTRAIN_INLINE
#endif

// Begins the template of a loop over `count` elements. Every loop has all parameters, used or not.
#define DTRAIN_LOOP(name)                                                                          \
    template <class T>                                                                             \
    DTRAIN_INLINE void name##_loop(                                                                \
        const Step &s, [[maybe_unused]] T *__restrict w, [[maybe_unused]] const T *__restrict g,   \
        [[maybe_unused]] T *__restrict a, [[maybe_unused]] T *__restrict b,                        \
        [[maybe_unused]] T *__restrict c, uint64_t count)

namespace dtrain::ps {

template <class T> DTRAIN_INLINE T root(T value) {
    if constexpr (sizeof(T) == 4)
        return __builtin_sqrtf(value);
    else
        return __builtin_sqrt(value);
}

template <class T> DTRAIN_INLINE T infinity() { return static_cast<T>(__builtin_inff()); }

} // namespace dtrain::ps
