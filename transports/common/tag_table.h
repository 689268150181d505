// Elements in order of arrival that can also be found by their tag.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "list.h"

#include <cstddef>
#include <cstdint>
#include <new>

namespace dtrain::tp {

// T must have `uint64_t tag` and the links `order` and `chain`. Does not own its elements. insert()
// never fails: if the table cannot grow, its chains do.
template <class T> class TagTable {
  public:
    using Order = List<T, &T::order>;

    TagTable() = default;
    TagTable(const TagTable &) = delete;
    TagTable &operator=(const TagTable &) = delete;
    ~TagTable() { release(); }

    T *front() const { return order_.front(); }
    static T *next(const T *item) { return Order::next(item); }

    void insert(T *item) {
        if (++count_ > 2 * (mask_ + 1)) grow();
        order_.push_back(item);
        bucket(item->tag).push_back(item);
    }
    void remove(T *item) {
        count_--;
        order_.remove(item);
        bucket(item->tag).remove(item);
    }
    // The oldest element with this tag, or nullptr.
    T *find(uint64_t tag) {
        T *item = bucket(tag).front();
        while (item && item->tag != tag) item = Chain::next(item);
        return item;
    }

  private:
    using Chain = List<T, &T::chain>;

    Chain &bucket(uint64_t tag) { // uses Fibonacci hashing
        return buckets_[(tag * 0x9E3779B97F4A7C15u >> 32) & mask_];
    }
    void grow() {
        const size_t size = 4 * (mask_ + 1);
        auto *buckets = new (std::nothrow) Chain[size];
        if (!buckets) return;
        release();
        buckets_ = buckets;
        mask_ = size - 1;
        for (T *item = order_.front(); item; item = next(item)) bucket(item->tag).push_back(item);
    }
    void release() {
        if (buckets_ != few_) delete[] buckets_;
    }

    Order order_;
    Chain few_[64];
    Chain *buckets_ = few_;
    size_t mask_ = 63;
    size_t count_ = 0;
};

} // namespace dtrain::tp
