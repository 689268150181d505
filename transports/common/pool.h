// Free lists, so that nothing is allocated in the steady state. Not thread-safe; nothing throws.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace dtrain::tp {

// A pool of objects of one type. All objects must be returned before the pool is destroyed.
template <class T> class Pool {
  public:
    Pool() = default;
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;
    ~Pool() {
        while (free_) ::operator delete(std::exchange(free_, free_->next));
    }
    // nullptr: out of memory.
    T *get() {
        void *memory = free_;
        if (free_)
            free_ = free_->next;
        else
            memory = ::operator new(size, std::nothrow);
        return memory ? new (memory) T : nullptr;
    }
    void put(T *object) {
        object->~T();
        free_ = new (object) Free{free_};
    }

  private:
    struct Free {
        Free *next;
    };
    static constexpr size_t size = sizeof(T) > sizeof(Free) ? sizeof(T) : sizeof(Free);
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    Free *free_ = nullptr;
};

// A pool of byte blocks in power-of-two sizes. Blocks above 256 KiB, and blocks that would make the
// free ones exceed 4 MiB, are returned to malloc.
class BlockPool {
  public:
    BlockPool() = default;
    BlockPool(const BlockPool &) = delete;
    BlockPool &operator=(const BlockPool &) = delete;
    ~BlockPool() {
        for (Free *&list : free_)
            while (list) std::free(std::exchange(list, list->next));
    }
    // nullptr: out of memory. len >= 1.
    void *get(size_t len) {
        const size_t index = class_of(len);
        if (index >= classes) return std::malloc(len);
        Free *block = free_[index];
        if (!block) return std::malloc(smallest << index);
        free_[index] = block->next;
        free_bytes_ -= smallest << index;
        return block;
    }
    void put(void *block, size_t len) {
        const size_t index = class_of(len);
        if (index >= classes || free_bytes_ + (smallest << index) > max_free) {
            std::free(block);
            return;
        }
        free_[index] = new (block) Free{free_[index]};
        free_bytes_ += smallest << index;
    }

  private:
    struct Free {
        Free *next;
    };
    static constexpr size_t smallest = 64, classes = 13, max_free = size_t{4} << 20;
    static size_t class_of(size_t len) {
        return len <= smallest ? 0 : size_t(std::bit_width((len - 1) / smallest));
    }
    std::array<Free *, classes> free_{};
    size_t free_bytes_ = 0;
};

} // namespace dtrain::tp
