// Maps elements of a dense table to servers, and cuts ranges by server.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace dtrain::ps {

struct Range {
    uint64_t first = 0, count = 0; // elements
    uint64_t end() const { return first + count; }
    // Whether `other` lies in this range. Neither range may overflow.
    bool contains(const Range &other) const {
        return other.first >= first && other.count <= count &&
               other.first - first <= count - other.count;
    }
    bool operator==(const Range &) const = default;
};

Range intersect(const Range &a, const Range &b);

// The part of a table that one server holds: ranges of elements, stored one after the other.
// Elements are numbered in the whole table, places from 0 within the part.
class Part {
  public:
    Part() = default;
    Part(const Range &range) { add(range); } // NOLINT: a range is a part
    void add(const Range &range);            // it must lie after all others

    uint64_t count() const { return count_; } // of elements
    size_t ranges() const { return extents_.size(); }
    const Range &range(size_t index) const { return extents_[index].range; }
    bool contains(const Range &range) const; // whether one of its ranges does
    uint64_t place_of(uint64_t element) const {
        const Extent &its = extent_of(element);
        return its.place + (element - its.range.first);
    }
    // Calls f(elements, place of the first) for each overlap of `wanted` with a range of the part.
    template <class F> void for_each_overlap(const Range &wanted, F &&f) const {
        if (wanted.count == 0) return;
        auto ends_before = [](const Extent &extent, uint64_t element) {
            return extent.range.end() <= element;
        };
        auto at = std::lower_bound(extents_.begin(), extents_.end(), wanted.first, ends_before);
        for (; at != extents_.end() && at->range.first < wanted.end(); ++at) {
            const Range both = intersect(at->range, wanted);
            f(both, at->place + (both.first - at->range.first));
        }
    }
    // Calls f(elements, place of the first) for each run of elements at these places.
    template <class F> void for_each_run(const Range &places, F &&f) const {
        auto ends_before = [](const Extent &extent, uint64_t place) {
            return extent.place + extent.range.count <= place;
        };
        auto at = std::lower_bound(extents_.begin(), extents_.end(), places.first, ends_before);
        for (; at != extents_.end() && at->place < places.end(); ++at) {
            const Range both = intersect({at->place, at->range.count}, places);
            f(Range{at->range.first + (both.first - at->place), both.count}, both.first);
        }
    }

  private:
    struct Extent {
        Range range;
        uint64_t place;
    };
    const Extent &extent_of(uint64_t element) const { // the last that begins at or before it
        if (extents_.size() == 1) return extents_[0];
        auto after = [](uint64_t e, const Extent &extent) { return e < extent.range.first; };
        return *(std::upper_bound(extents_.begin(), extents_.end(), element, after) - 1);
    }

    std::vector<Extent> extents_;
    uint64_t count_ = 0;
};

// The whole table as consecutive sections, each on one server.
class Partition {
  public:
    // version: grows when a later partition replaces this one.
    Partition(uint32_t servers, uint32_t version) : servers_(servers), version_(version) {}
    // Adds a section with the elements up to `end` that no section has yet, if there are any.
    void add(uint64_t end, uint32_t server);

    uint64_t length() const { return length_; }
    uint32_t servers() const { return servers_; }
    uint32_t version() const { return version_; }
    uint32_t server_of(uint64_t element) const { return section_of(element)->server; }
    Part part(uint32_t server) const; // may be empty
    uint64_t count(uint32_t server) const;

    // Calls f(server, part of the range) for each section that overlaps the range, in order.
    template <class F> void for_each_part(const Range &range, F &&f) const {
        if (range.count == 0) return;
        if (sections_.size() == 1) return f(sections_[0].server, range);
        uint64_t first = range.first;
        for (auto at = section_of(first); first < range.end(); ++at) {
            const uint64_t end = std::min(at->end, range.end());
            f(at->server, Range{first, end - first});
            first = end;
        }
    }

  private:
    struct Section {
        uint64_t end;
        uint32_t server;
    };
    std::vector<Section>::const_iterator section_of(uint64_t element) const {
        auto after = [](uint64_t e, const Section &section) { return e < section.end; };
        return std::upper_bound(sections_.begin(), sections_.end(), element, after);
    }

    std::vector<Section> sections_;
    uint64_t length_ = 0;
    uint32_t servers_, version_;
};

// The number of chunks of at most `chunk` elements in a range.
constexpr uint64_t chunks_of(uint64_t count, uint64_t chunk) {
    return count / chunk + (count % chunk != 0);
}

} // namespace dtrain::ps
