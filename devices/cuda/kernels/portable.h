// What the kernels need of a compiler: nvcc makes device code of them, g++ code for the driver of
// tests (tests/fakecuda), in which a "block" is a thread of the host.
// SPDX-License-Identifier: Apache-2.0
//
// DT_KERNEL(name, Arguments) { ... } defines a kernel whose arguments are `a`. DT_FIRST and DT_STEP
// are the elements of a thread: DT_FIRST, DT_FIRST + DT_STEP, ... All memory is reached through
// at<T>(address, i).
#pragma once
#include <stdint.h>

#ifdef __CUDACC__

#define DT_KERNEL(name, Arguments)                                                                 \
    extern "C" __global__ void __launch_bounds__(block_threads) name(const Arguments a)
#define DT_FN     static __device__ __forceinline__ // also of functions of a class
#define DT_MEMBER __device__ __forceinline__
#define DT_FIRST  (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x)
#define DT_STEP   (uint64_t(gridDim.x) * blockDim.x)
#define DT_UNROLL _Pragma("unroll")
#define DT_ROLL   _Pragma("unroll 1") // code for the few elements at the end stays small

namespace dtrain::cuda {
template <class T> DT_FN T &at(const void *address, uint64_t i) {
    return static_cast<T *>(const_cast<void *>(address))[i];
}
template <class To, class From> DT_FN To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace dtrain::cuda

#else
#include <string.h>

namespace dtrain::cuda {
// Which part of the grid a thread of the host plays, and where the memory of the fake device lies.
struct Grid {
    uint64_t first, step;
    uintptr_t base, bytes, distance; // addresses from base on are reached at +distance
};
} // namespace dtrain::cuda
extern "C" thread_local dtrain::cuda::Grid dtrain_fake_grid;

#define DT_KERNEL(name, Arguments)                                                                 \
    static void name##_body(const Arguments &a);                                                   \
    extern "C" __attribute__((visibility("default"))) void name(const void *raw, uint64_t bytes,   \
                                                                const dtrain::cuda::Grid *grid) {  \
        Arguments a;                                                                               \
        if (bytes != sizeof a) __builtin_trap();                                                   \
        memcpy(&a, raw, sizeof a);                                                                 \
        dtrain_fake_grid = *grid;                                                                  \
        name##_body(a);                                                                            \
    }                                                                                              \
    static void name##_body(const Arguments &a)
#define DT_FN     static inline
#define DT_MEMBER inline
#define DT_FIRST  (dtrain_fake_grid.first)
#define DT_STEP   (dtrain_fake_grid.step)
#define DT_UNROLL
#define DT_ROLL

namespace dtrain::cuda {
template <class T> DT_FN T &at(const void *address, uint64_t i) {
    uintptr_t place = reinterpret_cast<uintptr_t>(address);
    if (place - dtrain_fake_grid.base < dtrain_fake_grid.bytes) place += dtrain_fake_grid.distance;
    return reinterpret_cast<T *>(place)[i];
}
template <class To, class From> DT_FN To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace dtrain::cuda

#endif
