// A sorted list of registrations under a lock.
// SPDX-License-Identifier: Apache-2.0
#include "memory/registry.h"

#include <algorithm>
#include <mutex>

namespace dtrain::memory {
namespace {

bool begins_after(const void *address, const Registration *r) { return address < r->begin(); }

} // namespace

void Registry::add(Registration *registration) {
    if (registration->shared() == nullptr) return;
    std::lock_guard lock(mutex_);
    sorted_.insert(
        std::upper_bound(sorted_.begin(), sorted_.end(), registration->begin(), begins_after),
        registration);
    count_.store(sorted_.size(), std::memory_order_release);
}

Status Registry::remove(Registration *registration) {
    std::lock_guard lock(mutex_); // no operation can take hold of it meanwhile
    if (uint32_t n = registration->users.load(); n != 0)
        return fail(DTRAIN_ERR_BUSY, "%u operations still use this memory; wait for them", n);
    std::erase(sorted_, registration);
    count_.store(sorted_.size(), std::memory_order_release);
    return DTRAIN_OK;
}

Registration *Registry::hold(const void *address, uint64_t bytes) {
    if (count_.load(std::memory_order_acquire) == 0) return nullptr;
    std::shared_lock lock(mutex_);
    auto after = std::upper_bound(sorted_.begin(), sorted_.end(), address, begins_after);
    if (after == sorted_.begin()) return nullptr;
    Registration *found = *std::prev(after);
    if (!found->covers(address, bytes)) return nullptr;
    found->users.fetch_add(1);
    return found;
}

} // namespace dtrain::memory
