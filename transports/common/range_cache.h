// Caches values that are expensive to make for a range of addresses, such as registrations, until
// others need the room.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/list.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace dtrain::tp {

// One thread at a time. Cached ranges do not overlap; the latest one wins.
template <class T> class RangeCache {
  public:
    class Entry {
      public:
        T *value() const { return value_.get(); }

      private:
        friend RangeCache;
        uint64_t start_ = 0, length_ = 0;
        std::unique_ptr<T> value_;
        uint32_t users_ = 0;
        bool kept_ = false;
        Link<Entry> order_;
    };

    // Keeps up to `limit` bytes; while in use there may be more.
    explicit RangeCache(uint64_t limit) : limit_(limit) {}
    RangeCache(const RangeCache &) = delete;
    ~RangeCache() { forget(0, UINT64_MAX); } // no entry may be in use

    // The entry that covers the range, or nullptr. The caller must release it.
    Entry *find(uint64_t start, uint64_t length) {
        auto at = by_start_.upper_bound(start);
        if (at == by_start_.begin()) return nullptr;
        Entry *entry = (--at)->second;
        const uint64_t offset = start - entry->start_;
        if (offset > entry->length_ || length > entry->length_ - offset) return nullptr;
        if (!entry->users_++) idle_.remove(entry);
        return entry;
    }
    // As find(), for a value that was just made. nullptr: no memory; `value` is unchanged.
    Entry *add(uint64_t start, uint64_t length, std::unique_ptr<T> &&value) {
        forget(start, length);
        std::unique_ptr<Entry> made(new (std::nothrow) Entry);
        if (!made) return nullptr;
        try {
            by_start_.emplace(start, made.get());
        } catch (const std::bad_alloc &) {
            return nullptr;
        }
        Entry *entry = made.release();
        entry->start_ = start;
        entry->length_ = length;
        entry->value_ = std::move(value);
        entry->users_ = 1;
        entry->kept_ = true;
        bytes_ += length;
        trim(limit_);
        return entry;
    }
    void release(Entry *entry) {
        if (--entry->users_) return;
        if (!entry->kept_) {
            delete entry;
            return;
        }
        idle_.push_back(entry);
        trim(limit_);
    }
    // Entries that overlap the range are not found again, and are destroyed when no longer in use.
    void forget(uint64_t start, uint64_t length) {
        const uint64_t end = length > UINT64_MAX - start ? UINT64_MAX : start + length;
        auto at = by_start_.upper_bound(start);
        if (at != by_start_.begin()) {
            const Entry &before = *std::prev(at)->second;
            if (start - before.start_ < before.length_) --at;
        }
        while (at != by_start_.end() && at->first < end) at = remove(at);
    }
    // Destroys unused entries, the longest unused first, until at most `limit` bytes are kept.
    bool trim(uint64_t limit) {
        const uint64_t before = bytes_;
        while (bytes_ > limit && idle_.front()) remove(by_start_.find(idle_.front()->start_));
        return bytes_ < before;
    }
    uint64_t bytes() const { return bytes_; }
    uint64_t count() const { return by_start_.size(); }
    uint64_t evictions() const { return evictions_; }

  private:
    using Map = std::map<uint64_t, Entry *>;

    typename Map::iterator remove(typename Map::iterator at) {
        Entry *entry = at->second;
        bytes_ -= entry->length_;
        evictions_++;
        entry->kept_ = false;
        if (!entry->users_) {
            idle_.remove(entry);
            delete entry;
        }
        return by_start_.erase(at);
    }

    const uint64_t limit_;
    uint64_t bytes_ = 0;     // kept, in use or not
    uint64_t evictions_ = 0; // of kept entries
    Map by_start_;
    List<Entry, &Entry::order_> idle_; // the longest unused entry first
};

} // namespace dtrain::tp
