// A sorted list of registered memory under a lock.
// SPDX-License-Identifier: Apache-2.0
#include "accel/known_memory.h"

#include <algorithm>
#include <iterator>
#include <mutex>

namespace dtrain::accel {

// The first that begins behind the address.
KnownMemory::List::const_iterator KnownMemory::after(const void *address) const {
    return std::upper_bound(
        sorted_.begin(), sorted_.end(), address,
        [](const void *a, const std::shared_ptr<DeviceMemory> &m) { return a < m->begin(); });
}

Status KnownMemory::add(std::shared_ptr<DeviceMemory> memory) {
    std::lock_guard lock(mutex_);
    const uint8_t *const begin = memory->begin(), *const end = begin + memory->bytes();
    const auto next = after(begin);
    const DeviceMemory *other = nullptr;
    if (next != sorted_.begin() && (*std::prev(next))->covers(begin, 1))
        other = std::prev(next)->get();
    if (next != sorted_.end() && (*next)->begin() < end) other = next->get();
    if (other != nullptr)
        return fail(DTRAIN_ERR_INVALID,
                    "%p, %llu bytes: a part of it is registered already (%p, %llu bytes); "
                    "deregister that first",
                    static_cast<const void *>(begin),
                    static_cast<unsigned long long>(memory->bytes()),
                    static_cast<const void *>(other->begin()),
                    static_cast<unsigned long long>(other->bytes()));
    sorted_.insert(next, std::move(memory));
    count_.store(sorted_.size(), std::memory_order_release);
    return DTRAIN_OK;
}

Status KnownMemory::remove(const DeviceMemory &memory) {
    std::shared_ptr<DeviceMemory> last; // freed without the lock
    std::lock_guard lock(mutex_);       // nothing new can use it meanwhile
    const auto at = std::prev(after(memory.begin()));
    if (const long users = at->use_count() - 1; users != 0)
        return fail(DTRAIN_ERR_BUSY,
                    "%ld operations or persistent requests still use this memory; wait for the "
                    "ones and free the others",
                    users);
    last = *at;
    sorted_.erase(at);
    count_.store(sorted_.size(), std::memory_order_release);
    return DTRAIN_OK;
}

bool KnownMemory::find(const void *address, uint64_t bytes, Where &out) const {
    if (count_.load(std::memory_order_acquire) == 0) return false;
    std::shared_lock lock(mutex_);
    const auto next = after(address);
    if (next == sorted_.begin()) return false;
    const std::shared_ptr<DeviceMemory> &found = *std::prev(next);
    if (!found->covers(address, bytes)) return false;
    out = {.domain = &found->domain(),
           .address = found->reach(address),
           .kind = DTRAIN_DV_DEVICE,
           .allocation_bytes = 0,
           .memory = found};
    return true;
}

} // namespace dtrain::accel
