// A queue of frames in shared memory: one process writes, one reads.
// SPDX-License-Identifier: Apache-2.0
//
// Lamport's single-producer single-consumer queue ("Specifying concurrent program modules", 1983)
// over bytes: `head` counts what was written, `tail` what was read, neither ever wraps. Each side
// keeps its own counter privately and believes nothing that it reads from the other: a counter out
// of bounds means that the peer's process is broken or hostile, and shows as intact() == false.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dtrain::shm {

// Everything in a ring starts on this border, so that a frame's header is never split.
inline constexpr uint64_t ring_unit = 16;

// Counters on lines of their own; 128: adjacent lines are fetched in pairs.
struct RingCounters {
    alignas(128) std::atomic<uint64_t> head; // written by the writer
    alignas(128) std::atomic<uint64_t> tail; // written by the reader, as is
    std::atomic<uint64_t> released;          // a second count of the reader's
};
static_assert(sizeof(RingCounters) == 256 && std::atomic<uint64_t>::is_always_lock_free);

// Both ends share this: where the counters and the bytes are. capacity: a power of two.
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
    using RingEnd::RingEnd;

    // True when `bytes` more fit; looks at the reader's counter only when they do not seem to.
    bool has_room(uint64_t bytes) {
        if (room() < bytes) refresh();
        return room() >= bytes;
    }
    uint64_t room() const { return capacity_ - (head_ - tail_); } // as of the last refresh()
    void refresh();

    // The next free bytes in one piece; at most *len, which becomes how many these are.
    std::byte *free_bytes(uint64_t *len) const { return at(head_, len); }
    void advance(uint64_t bytes) { head_ += bytes; }
    void write(const void *data, uint64_t bytes); // both of the above; for room that there is
    // The same within one ring_unit.
    template <class T> void write_unit(const T &unit) {
        static_assert(sizeof unit == ring_unit);
        uint64_t len = ring_unit;
        std::memcpy(free_bytes(&len), &unit, sizeof unit);
        advance(sizeof unit);
    }
    void pad() { head_ = round_up_to_unit(head_); }
    // Shows the reader what was written, all at once.
    void publish() {
        const uint64_t bytes = head_ - published_;
        published_ = head_;
        counters_->head.store(head_);
        if (bytes >= least_fetched && bytes <= most_fetched) fetch_next(bytes);
    }

    // Counts what the reader is trusted with and will release().
    void charge(uint64_t amount) { charged_ += amount; }
    uint64_t owed() const { return charged_ - released_; } // as of the last refresh()

  private:
    // A shorter message does not wait for long; of a longer one the next part waits for the reader.
    static constexpr uint64_t least_fetched = 512, most_fetched = 12 << 10; // bytes
    void fetch_next(uint64_t bytes);

    uint64_t head_ = 0, tail_ = 0, published_ = 0, charged_ = 0, released_ = 0;
};

class RingReader : public RingEnd {
  public:
    using RingEnd::RingEnd;

    // Bytes that can be read; looks at the writer's counter only when none were left.
    uint64_t available() {
        if (head_ == tail_) refresh();
        return head_ - tail_;
    }
    uint64_t left() const { return head_ - tail_; } // as of the last refresh()
    void refresh();

    // The next bytes in one piece; at most *len, which becomes how many these are. They may change
    // at any time.
    const std::byte *bytes(uint64_t *len) const { return at(tail_, len); }
    void advance(uint64_t bytes) { tail_ += bytes; }
    void read(void *data, uint64_t bytes); // both of the above; for bytes that there are
    // read() without advance(); within one ring_unit
    template <class T> void peek(T &unit) const {
        static_assert(sizeof unit <= ring_unit);
        uint64_t len = ring_unit;
        std::memcpy(&unit, bytes(&len), sizeof unit);
    }
    void pad() { tail_ = round_up_to_unit(tail_); }
    void release(uint64_t amount) { released_ += amount; }
    // Gives the room of what was read, and what was released, back to the writer.
    void publish() {
        counters_->released.store(released_, std::memory_order_relaxed);
        counters_->tail.store(tail_);
    }

  private:
    uint64_t head_ = 0, tail_ = 0, released_ = 0;
};

} // namespace dtrain::shm
