// The layout of a window, and how its sleeping members are woken.
// SPDX-License-Identifier: Apache-2.0
#include "shm/window.h"

#include <bit>

namespace dtrain::shm {

bool WindowShape::is_valid() const {
    return bytes != 0 && bytes <= (1ull << 48) && members != 0 && members <= max_members;
}

uint64_t WindowShape::size() const {
    return offset() + sizeof(Window::Shared) + members * sizeof(Name);
}

Window::Window(Device &device, Segment &&segment, Fd &&fd, const Name &id, WindowShape shape,
               uint32_t member, const Name &own, const Doorbell &bell)
    : device_(device), segment_(std::move(segment)), fd_(std::move(fd)), id_(id), shape_(shape),
      member_(member), bell_(bell) {
    shared()->names[member] = own;
}

void Window::set_asleep(bool asleep) {
    std::atomic<uint64_t> &word = shared()->asleep[member_ / 64];
    uint64_t bit = uint64_t{1} << member_ % 64;
    if (asleep)
        word.fetch_or(bit);
    else
        word.fetch_and(~bit);
}

void Window::ring() const {
    // Orders the caller's stores before the check for sleepers. Not atomic_thread_fence(), since
    // thread sanitizers do not know it. (Letting the sleeper issue the fence for all, by
    // membarrier(), gained nothing here, and registering for it costs a process with threads 30
    // ms.)
    __sync_synchronize();
    for (uint32_t first = 0; first < shape_.members; first += 64) {
        std::atomic<uint64_t> &word = shared()->asleep[first / 64];
        if (word.load(std::memory_order_relaxed) == 0) continue;
        for (uint64_t bits = word.exchange(0); bits != 0; bits &= bits - 1) {
            uint32_t member = first + static_cast<uint32_t>(std::countr_zero(bits));
            if (member < shape_.members) bell_.ring(shared()->names[member]);
        }
    }
}

} // namespace dtrain::shm
