// Numbers for objects that a peer refers to. A number holds a slot and a count of the slot's uses,
// so an outdated or invented number finds nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace dtrain::tp {

template <class T> class IdTable { // owns no objects
  public:
    uint32_t size() const { return size_; }

    // False: no memory, or the table holds 65536 objects.
    bool insert(T *object, uint32_t *id_p) {
        if (free_ == none && !grow()) return false;
        Slot &slot = slots_[free_];
        *id_p = uint32_t{slot.use} << 16 | free_;
        free_ = slot.next_free;
        slot.object = object;
        size_++;
        return true;
    }
    T *find(uint32_t id) const {
        const uint32_t index = id & 0xFFFF;
        return index < capacity_ && slots_[index].use == id >> 16 ? slots_[index].object : nullptr;
    }
    void remove(uint32_t id) { // find(id) must not be nullptr
        Slot &slot = slots_[id & 0xFFFF];
        slot.object = nullptr;
        slot.use++;
        slot.next_free = std::exchange(free_, id & 0xFFFF);
        size_--;
    }
    // The first object for which the condition holds, or nullptr.
    template <class Condition> T *find_if(Condition &&condition) const {
        for (uint32_t i = 0; i < capacity_; i++)
            if (slots_[i].object && condition(*slots_[i].object)) return slots_[i].object;
        return nullptr;
    }

  private:
    struct Slot {
        T *object = nullptr;
        uint32_t next_free = none;
        uint16_t use = 0;
    };
    static constexpr uint32_t none = UINT32_MAX;

    bool grow() {
        const uint32_t capacity = capacity_ ? 2 * capacity_ : 16;
        if (capacity > 0x10000) return false;
        std::unique_ptr<Slot[]> slots(new (std::nothrow) Slot[capacity]);
        if (!slots) return false;
        for (uint32_t i = 0; i < capacity_; i++) slots[i] = slots_[i];
        for (uint32_t i = capacity; i-- > capacity_;) slots[i].next_free = std::exchange(free_, i);
        slots_ = std::move(slots);
        capacity_ = capacity;
        return true;
    }
    std::unique_ptr<Slot[]> slots_;
    uint32_t capacity_ = 0;
    uint32_t free_ = none;
    uint32_t size_ = 0;
};

} // namespace dtrain::tp
