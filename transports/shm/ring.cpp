// Copies bytes into and out of a ring, and checks the other side's counters.
// SPDX-License-Identifier: Apache-2.0
#include "shm/ring.h"

namespace dtrain::shm {
namespace {

constexpr uint64_t cache_line = 64;

void fetch_to_write(const std::byte *at, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += cache_line) {
#if defined(__x86_64__) // the builtin uses the prefetch for shared lines
        asm volatile("prefetchw %0" : : "m"(at[i]));
#else
        __builtin_prefetch(at + i, 1);
#endif
    }
}

} // namespace

// The next message will probably be as long as this one. The reader's core holds the cache lines:
// they are fetched while this core does something else.
void RingWriter::fetch_next(uint64_t bytes) {
    uint64_t len = std::min(bytes, room());
    const std::byte *next = free_bytes(&len);
    fetch_to_write(next, len);
}

void RingWriter::refresh() {
    uint64_t tail = counters_->tail.load();
    uint64_t released = counters_->released.load(std::memory_order_relaxed);
    // The reader's position must lie between its last known one and what was written.
    if (!believe(tail - tail_ <= head_ - tail_ && released - released_ <= owed())) return;
    tail_ = tail;
    released_ = released;
}

void RingWriter::write(const void *data, uint64_t bytes) {
    for (auto *from = static_cast<const std::byte *>(data); bytes > 0;) {
        uint64_t len = bytes;
        std::byte *to = free_bytes(&len);
        copies_.copy(to, from, len);
        advance(len);
        from += len;
        bytes -= len;
    }
}

void RingReader::refresh() {
    uint64_t head = counters_->head.load();
    // The writer's position may only grow, by no more than fits.
    if (!believe(head - tail_ >= head_ - tail_ && head - tail_ <= capacity_ &&
                 head % ring_unit == 0))
        return;
    head_ = head;
}

void RingReader::read(void *data, uint64_t bytes) {
    for (auto *to = static_cast<std::byte *>(data); bytes > 0;) {
        uint64_t len = bytes;
        const std::byte *from = this->bytes(&len);
        std::memcpy(to, from, len);
        advance(len);
        to += len;
        bytes -= len;
    }
}

} // namespace dtrain::shm
