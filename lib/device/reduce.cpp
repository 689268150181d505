// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>

#include "device/kernel_table.h"
#include "device/kernels.h"

namespace dtrain::device {
namespace {

// Chosen at the first use; two threads at once choose the same.
constinit std::atomic<const Kernels *> chosen = nullptr;

const Kernels &best_kernels() {
    const Kernels *kernels = chosen.load(std::memory_order_relaxed);
    if (kernels == nullptr) {
        kernels = supported_kernels(0);
        chosen.store(kernels, std::memory_order_relaxed);
    }
    return *kernels;
}

// The running result of one block: small enough to stay in the first-level cache, large enough for
// each source to be read in runs that the processor prefetches.
constexpr uint64_t block_bytes = 8192;

} // namespace

void reduce(void *dst, const void *src, uint64_t count, uint32_t dtype, uint32_t op) {
    reduce_pair(dst, dst, src, count, dtype, op);
}

void reduce_pair(void *dst, const void *a, const void *b, uint64_t count, uint32_t dtype,
                 uint32_t op) {
    best_kernels().dtypes[dtype]->ops[op].pair(dst, a, b, count);
}

void reduce_many(void *dst, const void *const *srcs, uint32_t n, uint64_t count, uint32_t dtype,
                 uint32_t op) {
    reduce_many(best_kernels(), dst, srcs, n, count, dtype, op);
}

void reduce_many(const Kernels &kernels, void *dst, const void *const *srcs, uint32_t n,
                 uint64_t count, uint32_t dtype, uint32_t op) {
    const DtypeKernels &of_dtype = *kernels.dtypes[dtype];
    const ReduceKernel &kernel = of_dtype.ops[op];
    const uint64_t size = dtype_size(dtype);
    if (n == 1 && dst != srcs[0] && count > 0) copy(dst, srcs[0], count * size);
    if (n == 2) kernel.pair(dst, srcs[0], srcs[1], count);
    if (n <= 2) return;
    alignas(64) unsigned char running[block_bytes];
    const uint64_t block = block_bytes / of_dtype.wide_size;
    for (uint64_t begin = 0; begin < count; begin += block) {
        const uint64_t length = count - begin < block ? count - begin : block;
        auto source = [&](uint32_t k) {
            return static_cast<const unsigned char *>(srcs[k]) + begin * size;
        };
        kernel.first(running, source(0), source(1), length);
        for (uint32_t k = 2; k < n - 1; k++) kernel.next(running, running, source(k), length);
        // dst may be a source, so it is written when all of them have been read.
        kernel.last(static_cast<unsigned char *>(dst) + begin * size, running, source(n - 1),
                    length);
    }
}

void scale(void *dst, uint64_t count, uint32_t dtype, uint32_t divisor) {
    best_kernels().dtypes[dtype]->scale(dst, count, divisor);
}

const char *kernel_target() { return best_kernels().target; }

} // namespace dtrain::device
