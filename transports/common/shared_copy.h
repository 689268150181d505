// Copies into memory that another core reads, such as a ring.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace dtrain::tp {

inline constexpr uint64_t cache_line = 64; // bytes; streaming stores need whole ones

// Streaming stores go to memory past the caches: the destination's lines are not fetched first. A
// later store of this thread comes after them. Where there are none, an ordinary copy.
inline void copy_stream(void *to, const void *from, uint64_t bytes) {
#ifdef __x86_64__
    const uint64_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % cache_line);
    std::memcpy(to, from, head);
    auto *at = reinterpret_cast<__m128i *>(static_cast<char *>(to) + head);
    auto *source = reinterpret_cast<const __m128i *>(static_cast<const char *>(from) + head);
    const uint64_t lines = (bytes - head) / cache_line;
    for (uint64_t i = 0; i < lines; i++, at += 4, source += 4) {
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(at, a);
        _mm_stream_si128(at + 1, b);
        _mm_stream_si128(at + 2, c);
        _mm_stream_si128(at + 3, d);
    }
    _mm_sfence();
    std::memcpy(at, source, bytes - head - lines * cache_line);
#else
    std::memcpy(to, from, bytes);
#endif
}

// Option shm.distance: how far apart the cores of two processes are taken to be.
enum class Distance : uint8_t { measured, near, far };

inline Distance distance_named(std::string_view name) {
    return name == "near" ? Distance::near : name == "far" ? Distance::far : Distance::measured;
}

// Whether the core that reads what this one writes is so far away that its lines come one after
// another.
class Remoteness {
  public:
    static constexpr uint64_t lines = 8; // of a measurement
    // The time from stores into that many lines that the reader has read until this core had them.
    void add(int64_t store_ns) {
        if (store_ns > most_ns) return;
        recent_[next_++ % recent_.size()] = store_ns;
        std::array<int64_t, samples> sorted = recent_;
        std::sort(sorted.begin(), sorted.end());
        median_ns_ = sorted[samples / 2];
    }
    bool is_far() const { return median_ns_ >= far_ns; }
    int64_t median_ns() const { return median_ns_; } // of the last ones
    uint32_t measurements() const { return next_; }

  private:
    static constexpr uint32_t samples = 3; // of which the median counts
    // One line takes 60 to 80 where it takes 50 to 70 ns from core to core, and 130 to 180 where it
    // takes 250; each further one 7 and 27. But some processors fetch them together: all eight
    // take 75 to 180 where one way of a line takes 140. A longer time is that of something else,
    // such as a new page.
    static constexpr int64_t far_ns = 220, most_ns = 1200;

    std::array<int64_t, samples> recent_{};
    uint32_t next_ = 0;
    int64_t median_ns_ = 0;
};

// The copies of one writer. A store into a line that the reader still has in its cache waits for
// that core, and such stores follow one another: 7 ns for each line between near cores, 27 between
// far ones. Streaming stores take 2 ns a line between both, but then the reader finds the lines in
// no cache: between near cores nothing is gained, between far ones the copy takes a tenth of the
// time (docs/PERFORMANCE.md).
//
// Now and then it measures stores into lines that are written anyway; the reader does nothing for
// that.
class SharedCopy {
  public:
    explicit SharedCopy(Distance distance = Distance::measured) : distance_(distance) {}

    // bytes > 0
    void copy(void *to, const void *from, uint64_t bytes) {
        if (streams(to, bytes)) return copy_stream(to, from, bytes);
        std::memcpy(to, from, bytes);
    }
    // Whether copy_stream() is faster than ordinary stores for these bytes. They must be written
    // next: a measurement changes some.
    bool streams(void *to, uint64_t bytes) {
        if (!can_stream || bytes < least_bytes) return false;
        if (measures(bytes)) {
            measure(to);
            since_ = 0;
        }
        since_ += cost(bytes);
        return is_far();
    }
    // As of the last copy.
    bool is_far() const {
        return can_stream &&
               (distance_ == Distance::measured ? reader_.is_far() : distance_ == Distance::far);
    }
    const Remoteness &reader() const { return reader_; }
    bool is_measured() const { return distance_ == Distance::measured; }
    // Whether the lines of the next copy are better left with the reader: they are far away, or one
    // of them is measured.
    bool leaves_lines(uint64_t bytes) const { return is_far() || measures(bytes); }

  private:
#ifdef __x86_64__
    static constexpr bool can_stream = true;
#else
    static constexpr bool can_stream = false;
#endif
    static constexpr uint64_t least_bytes = 768; // below, the reader's way to memory takes longer
    // A measurement takes 0.1 to 0.5 us.
    static constexpr uint64_t between = 512 << 10, per_call = 2 << 10; // bytes

    static uint64_t cost(uint64_t bytes) { return bytes + per_call; }
    bool measures(uint64_t bytes) const {
        return distance_ == Distance::measured && since_ + cost(bytes) > between;
    }

    void measure(void *to) {
        constexpr uint64_t at = 256; // the first lines may have come with a header before them
        static_assert(at + Remoteness::lines * cache_line <= least_bytes);
        // The fences wait until the lines of earlier stores, and of these, have come.
        __sync_synchronize();
        const auto begin = std::chrono::steady_clock::now();
        for (uint64_t i = 0; i < Remoteness::lines; i++)
            std::memset(static_cast<char *>(to) + at + i * cache_line, 0, sizeof(uint64_t));
        __sync_synchronize();
        reader_.add((std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1));
    }

    Distance distance_;
    Remoteness reader_;
    uint64_t since_ = between; // the last measurement: at once
};

} // namespace dtrain::tp
