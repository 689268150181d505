// Forwards the functions of kernels.h to the best kernels of this processor.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <bit>

#include "device/kernel_table.h"
#include "device/kernels.h"

namespace dtrain::device {
namespace {

// Chosen at the first use; concurrent threads choose the same.
constinit std::atomic<const Kernels *> chosen = nullptr;

const Kernels &best_kernels() {
    const Kernels *kernels = chosen.load(std::memory_order_relaxed);
    if (kernels == nullptr) {
        kernels = supported_kernels(0);
        chosen.store(kernels, std::memory_order_relaxed);
    }
    return *kernels;
}

} // namespace

void reduce(void *dst, const void *src, uint64_t count, uint32_t dtype, uint32_t op) {
    reduce_pair(dst, dst, src, count, dtype, op);
}

// Not inline: gcc 12 would store both pointers by one vector instruction, for which the loads that
// follow at once must wait, in each row that a push adds.
[[gnu::noinline]] void reduce_pair(void *dst, const void *a, const void *b, uint64_t count,
                                   uint32_t dtype, uint32_t op) {
    const void *const srcs[] = {a, b};
    reduce_many(dst, srcs, 2, count, dtype, op);
}

void reduce_many(void *dst, const void *const *srcs, uint32_t n, uint64_t count, uint32_t dtype,
                 uint32_t op) {
    reduce_to(&dst, 1, srcs, n, count, dtype, op);
}

void reduce_to(void *const *dsts, uint32_t m, const void *const *srcs, uint32_t n, uint64_t count,
               uint32_t dtype, uint32_t op) {
    best_kernels().dtypes[dtype]->ops[op](dsts, m, srcs, n, count);
}

void scale(void *dst, uint64_t count, uint32_t dtype, uint32_t divisor) {
    best_kernels().dtypes[dtype]->scale(dst, count, divisor);
}

void multiply(void *dst, const void *src, uint64_t count, uint32_t dtype, double factor) {
    best_kernels().dtypes[dtype]->multiply(dst, src, count, factor);
}

void blend(void *dst, const void *a, double x, const void *b, double y, uint64_t count,
           uint32_t dtype) {
    best_kernels().dtypes[dtype]->blend(dst, a, x, b, y, count);
}

void dots(const void *a, const void *b, uint64_t count, uint32_t dtype, double sums[3]) {
    best_kernels().dtypes[dtype]->dots(a, b, count, sums);
}

double squares(const void *a, uint64_t count, uint32_t dtype) {
    return best_kernels().dtypes[dtype]->squares(a, count);
}

void widen(float *dst, const void *src, uint64_t count, uint32_t dtype) {
    best_kernels().dtypes[dtype]->widen(dst, src, count);
}

void narrow(void *dst, const float *src, uint64_t count, uint32_t dtype) {
    best_kernels().dtypes[dtype]->narrow(dst, src, count);
}

void narrow_randomly(void *dst, const float *src, uint64_t count, uint32_t dtype, uint32_t seed,
                     uint64_t first) {
    best_kernels().dtypes[dtype]->narrow_randomly(dst, src, count, seed,
                                                  static_cast<uint32_t>(first));
}

void weigh(void *dst, const void *const *srcs, const double *weights, uint32_t n, uint64_t count,
           uint32_t dtype) {
    best_kernels().dtypes[dtype]->weigh(dst, srcs, weights, n, count);
}

float largest(const float *src, uint64_t count) {
    return std::bit_cast<float>(best_kernels().largest(src, count));
}

void quantize(int8_t *dst, const float *src, uint64_t count, float factor) {
    best_kernels().quantize(dst, src, count, factor);
}

void quantize_randomly(int8_t *dst, const float *src, uint64_t count, float factor, uint32_t seed) {
    best_kernels().quantize_randomly(dst, src, count, factor, seed);
}

void dequantize(float *dst, const int8_t *src, uint64_t count, float scale) {
    best_kernels().dequantize(dst, src, count, scale);
}

const char *kernel_target() { return best_kernels().target; }

} // namespace dtrain::device
