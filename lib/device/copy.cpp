// Copies memory, with the fastest instructions for its size and destination.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>

#include "common/shared_copy.h"
#include "device/cpu.h"
#include "device/kernels.h"

namespace dtrain::device {

#ifdef __x86_64__
namespace {

enum class StringCopy : uint8_t { unknown, slow, fast };
constinit std::atomic<StringCopy> string_copy = StringCopy::unknown;

bool string_copy_is_fast() {
    StringCopy known = string_copy.load(std::memory_order_relaxed);
    if (known == StringCopy::unknown) {
        known = cpu_has_fast_string_copy() ? StringCopy::fast : StringCopy::slow;
        string_copy.store(known, std::memory_order_relaxed);
    }
    return known == StringCopy::fast;
}

constexpr uint64_t string_copy_min = 1024; // below, the start-up costs more than it gains
constexpr uint64_t stream_min = 256 << 10; // below, the destination is worth caching
constexpr uint64_t line = 64;

// Copies up to the destination's next cache line; returns the number of bytes copied. `rep movsb`
// to the middle of a line is many times slower on some processors.
uint64_t copy_to_line(void *dst, const void *src) {
    const uint64_t head = -reinterpret_cast<uintptr_t>(dst) % line;
    std::memcpy(dst, src, head);
    return head;
}

} // namespace

// `rep movsb` tells the processor the whole length, so it neither fetches lines that it will
// overwrite nor evicts lines early.
void copy(void *dst, const void *src, uint64_t bytes) {
    if (bytes < string_copy_min || !string_copy_is_fast()) {
        if (bytes > 0) std::memcpy(dst, src, bytes);
        return;
    }
    const uint64_t head = copy_to_line(dst, src);
    void *to = static_cast<char *>(dst) + head;
    const void *from = static_cast<const char *>(src) + head;
    bytes -= head;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void copy_stream(void *dst, const void *src, uint64_t bytes) {
    if (bytes < stream_min) return copy(dst, src, bytes);
    tp::copy_stream(dst, src, bytes);
}

#else

void copy(void *dst, const void *src, uint64_t bytes) {
    if (bytes > 0) std::memcpy(dst, src, bytes);
}

void copy_stream(void *dst, const void *src, uint64_t bytes) { copy(dst, src, bytes); }

#endif

} // namespace dtrain::device
