// A map of registrations, sorted by address.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/registrations.h"

#include <algorithm>
#include <new>

namespace dtrain::rdm {

bool Registrations::add(Registered *registration) {
    try {
        by_start_.emplace(registration->start, registration);
    } catch (const std::bad_alloc &) {
        return false;
    }
    bytes_ += registration->length;
    longest_ = std::max(longest_, registration->length);
    return true;
}

void Registrations::remove(Registered *registration) {
    auto [at, end] = by_start_.equal_range(registration->start);
    while (at != end && at->second != registration) ++at;
    if (at == end) return;
    by_start_.erase(at);
    bytes_ -= registration->length;
}

Registered *Registrations::find(const tp::IovCursor &memory, const void *piece,
                                uint64_t length) const {
    auto *named = static_cast<Registered *>(memory.registration());
    if (named && named->covers(piece, length)) return named;
    const uint64_t start = reinterpret_cast<uintptr_t>(piece);
    for (auto at = by_start_.upper_bound(start); at != by_start_.begin();) {
        --at;
        if (at->second->covers(piece, length)) return at->second;
        if (start - at->first > longest_) break; // no earlier one reaches this far
    }
    return nullptr;
}

} // namespace dtrain::rdm
