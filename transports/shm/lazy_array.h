// An array in which only blocks that were touched take memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace dtrain::shm {

template <class T, size_t size> class LazyArray {
  public:
    // Returns element i < size, created by T{} at its first use; nullptr: no memory.
    T *touch(size_t i) {
        std::unique_ptr<T[]> &block = blocks_[i / block_size];
        if (!block) block.reset(new (std::nothrow) T[block_size]{});
        return block ? &block[i % block_size] : nullptr;
    }
    // Any i; nullptr if the element's block was not touched.
    T *find(size_t i) const {
        return i < size && blocks_[i / block_size] ? &blocks_[i / block_size][i % block_size]
                                                   : nullptr;
    }
    template <class Visit> void for_each(Visit &&visit) {
        for (std::unique_ptr<T[]> &block : blocks_)
            for (size_t i = 0; block && i < block_size; i++) visit(block[i]);
    }

  private:
    static constexpr size_t block_size = 64;
    static_assert(size % block_size == 0);
    std::unique_ptr<T[]> blocks_[size / block_size];
};

} // namespace dtrain::shm
