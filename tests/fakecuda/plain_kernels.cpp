// Kernels that are plain CUDA, those of examples/gpu, as g++ makes them for the driver for tests.
// SPDX-License-Identifier: Apache-2.0
//
// Such a kernel has parameters of its own, in which addresses of the fake device are replaced by
// those at which the host reaches its memory.
#include "devices/cuda/kernels/portable.h"

#include <math.h>
#include <tuple>
#include <type_traits>

namespace {

using dtrain::cuda::Grid;

struct Place {
    unsigned x;
};
thread_local Place blockIdx, gridDim;
constexpr Place blockDim{1}, threadIdx{0};

template <class T> T take(const char *raw, uint64_t &at, const Grid &grid) {
    at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
    T value;
    memcpy(&value, raw + at, sizeof value);
    at += sizeof value;
    if constexpr (std::is_pointer_v<T>) {
        const auto place = reinterpret_cast<uintptr_t>(value);
        if (place - grid.base < grid.bytes) value = reinterpret_cast<T>(place + grid.distance);
    }
    return value;
}

template <class... Parameters>
void run(void (*kernel)(Parameters...), const void *raw, uint64_t bytes, const Grid &grid) {
    blockIdx.x = unsigned(grid.first);
    gridDim.x = unsigned(grid.step);
    uint64_t at = 0;
    const std::tuple<Parameters...> parameters{
        take<Parameters>(static_cast<const char *>(raw), at, grid)...};
    if (bytes != at) __builtin_trap();
    std::apply(kernel, parameters);
}

} // namespace

#define __global__
#define digits_hidden   digits_hidden_kernel
#define digits_output   digits_output_kernel
#define digits_gradient digits_gradient_kernel
#define digits_step     digits_step_kernel
#include "examples/gpu/digits.cu"
#undef digits_hidden
#undef digits_output
#undef digits_gradient
#undef digits_step

#define PLAIN_KERNEL(name)                                                                         \
    extern "C" __attribute__((visibility("default"))) void name(const void *raw, uint64_t bytes,   \
                                                                const Grid *grid) {                \
        run(name##_kernel, raw, bytes, *grid);                                                     \
    }
PLAIN_KERNEL(digits_hidden)
PLAIN_KERNEL(digits_output)
PLAIN_KERNEL(digits_gradient)
PLAIN_KERNEL(digits_step)
