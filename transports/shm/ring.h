// A queue of frames in shared memory: one process writes, one reads.
// SPDX-License-Identifier: Apache-2.0
//
// Lamport's single-producer single-consumer queue ("Specifying concurrent program modules", 1983)
// over bytes: `head` counts the bytes written, `tail` the bytes read; neither ever wraps. Each side
// keeps its own counter in private memory and trusts nothing that it reads from the other: a
// counter out of bounds means that the peer's process is broken or hostile, and makes intact()
// false.
#pragma once
#include "common/shared_copy.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dtrain::shm {

// Everything in a ring starts at a multiple of this, so that a frame's header is never split.
inline constexpr uint64_t ring_unit = 16;

// Each counter has a cache line of its own; 128, since adjacent lines are fetched in pairs.
struct RingCounters {
    alignas(128) std::atomic<uint64_t> head; // written by the writer
    alignas(128) std::atomic<uint64_t> tail; // written by the reader, as is `released`
    std::atomic<uint64_t> released;          // a second count of the reader
};
static_assert(sizeof(RingCounters) == 256 && std::atomic<uint64_t>::is_always_lock_free);

// Common to both ends: the location of the counters and the bytes. capacity: a power of two.
class RingEnd {
  public:
    RingEnd() = default;
    RingEnd(RingCounters *counters, std::byte *bytes, uint64_t capacity)
        : counters_(counters), bytes_(bytes), capacity_(capacity) {}

    bool intact() const { return intact_; }
    uint64_t capacity() const { return capacity_; }

  protected:
    bool believe(bool plausible) { return intact_ = intact_ && plausible; }
    std::byte *at(uint64_t position, uint64_t *len) const {
        uint64_t offset = position & (capacity_ - 1);
        *len = std::min(*len, capacity_ - offset);
        return bytes_ + offset;
    }
    static uint64_t round_up_to_unit(uint64_t position) {
        return (position + ring_unit - 1) / ring_unit * ring_unit;
    }

    RingCounters *counters_ = nullptr;
    std::byte *bytes_ = nullptr;
    uint64_t capacity_ = 0;
    bool intact_ = true;
};

class RingWriter : public RingEnd {
  public:
    RingWriter() = default;
    RingWriter(RingCounters *counters, std::byte *bytes, uint64_t capacity,
               tp::Distance distance = tp::Distance::measured)
        : RingEnd(counters, bytes, capacity), copies_(distance) {}

    // True if `bytes` more fit; reads the reader's counter only if they do not seem to.
    bool has_room(uint64_t bytes) {
        if (room() < bytes) refresh();
        return room() >= bytes;
    }
    uint64_t room() const { return capacity_ - (head_ - tail_); } // as of the last refresh()
    void refresh();

    // The next free bytes in one piece; *len is reduced to their number.
    std::byte *free_bytes(uint64_t *len) const { return at(head_, len); }
    void advance(uint64_t bytes) { head_ += bytes; }
    void write(const void *data, uint64_t bytes); // free_bytes() and advance(); there must be room
    bool reader_is_far() const { return copies_.is_far(); }
    // As write(), within one ring_unit.
    template <class T> void write_unit(const T &unit) {
        static_assert(sizeof unit == ring_unit);
        uint64_t len = ring_unit;
        std::memcpy(free_bytes(&len), &unit, sizeof unit);
        advance(sizeof unit);
    }
    void pad() { head_ = round_up_to_unit(head_); }
    // Shows the reader all that was written, at once.
    void publish() {
        const uint64_t bytes = head_ - published_;
        published_ = head_;
        counters_->head.store(head_);
        if (bytes >= least_fetched && bytes <= most_fetched && !copies_.leaves_lines(bytes))
            fetch_next(bytes);
    }

    // Counts what the reader holds and will release().
    void charge(uint64_t amount) { charged_ += amount; }
    uint64_t owed() const { return charged_ - released_; } // as of the last refresh()

  private:
    // A shorter message is fast anyway; for a longer one the next part waits for the reader.
    static constexpr uint64_t least_fetched = 512, most_fetched = 12 << 10; // bytes
    void fetch_next(uint64_t bytes);

    tp::SharedCopy copies_;
    uint64_t head_ = 0, tail_ = 0, published_ = 0, charged_ = 0, released_ = 0;
};

class RingReader : public RingEnd {
  public:
    using RingEnd::RingEnd;

    // Bytes that can be read; reads the writer's counter only if none were left.
    uint64_t available() {
        if (head_ == tail_) refresh();
        return head_ - tail_;
    }
    uint64_t left() const { return head_ - tail_; } // as of the last refresh()
    void refresh();

    // The next bytes in one piece; *len is reduced to their number. They may change at any time.
    const std::byte *bytes(uint64_t *len) const { return at(tail_, len); }
    void advance(uint64_t bytes) { tail_ += bytes; }
    void read(void *data, uint64_t bytes); // bytes() and advance(); the bytes must be available
    // As read() without advance(), within one ring_unit.
    template <class T> void peek(T &unit) const {
        static_assert(sizeof unit <= ring_unit);
        uint64_t len = ring_unit;
        std::memcpy(&unit, bytes(&len), sizeof unit);
    }
    void pad() { tail_ = round_up_to_unit(tail_); }
    void release(uint64_t amount) { released_ += amount; }
    // Returns to the writer the room of what was read, and what was released.
    void publish() {
        counters_->released.store(released_, std::memory_order_relaxed);
        counters_->tail.store(tail_);
    }

  private:
    uint64_t head_ = 0, tail_ = 0, released_ = 0;
};

} // namespace dtrain::shm
