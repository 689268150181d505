// Which server holds which elements of a table, and how a range is cut for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace dtrain::ps {

struct Range {
    uint64_t first = 0, count = 0; // elements
    uint64_t end() const { return first + count; }
    // other lies in this range; both are free of overflow.
    bool contains(const Range &other) const {
        return other.first >= first && other.count <= count &&
               other.first - first <= count - other.count;
    }
    bool operator==(const Range &) const = default;
};

Range intersect(const Range &a, const Range &b);

// Contiguous ranges of equal size to within one unit, in the order of the servers. A unit is 16
// elements (a vector, and at least half a cache line of any type), or, when that would leave a
// server without any, 1; always whole rows.
class Partition {
  public:
    // length > 0, servers > 0; version: grows when a later partition replaces this one; row: the
    // elements of one, which divide the length, or 0.
    Partition(uint64_t length, uint32_t servers, uint32_t version = 0, uint64_t row = 0);

    uint32_t server_of(uint64_t element) const; // element < length
    Range part(uint32_t server) const;          // may be empty when length < servers
    uint64_t length() const { return length_; }
    uint32_t servers() const { return servers_; }
    uint32_t version() const { return version_; }

    // f(server, part of the range) for each server that holds some of it.
    template <class F> void for_each_part(const Range &range, F &&f) const {
        if (range.count == 0) return;
        if (servers_ == 1) return f(0, range);
        uint32_t last = server_of(range.end() - 1);
        for (uint32_t s = server_of(range.first); s <= last; ++s) f(s, intersect(range, part(s)));
    }

  private:
    uint64_t start(uint32_t server) const;

    uint64_t length_, unit_, per_server_; // units that each server has at least
    uint64_t longer_;                     // this many servers have one unit more
    uint32_t servers_, version_;
};

// Into how many chunks of at most `chunk` elements a range is cut.
constexpr uint64_t chunks_of(uint64_t count, uint64_t chunk) {
    return count / chunk + (count % chunk != 0);
}

} // namespace dtrain::ps
