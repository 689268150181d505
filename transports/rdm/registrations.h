// Memory that the caller has registered, by address: pieces inside it are not registered again.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rdm/wire.h"

#include <map>

namespace dtrain::rdm {

struct Registered : dtrain_tp_mr { // base of the wires' own types
    uint64_t start = 0, length = 0;

    bool covers(const void *address, uint64_t bytes) const {
        const uint64_t at = reinterpret_cast<uintptr_t>(address) - start;
        return at <= length && bytes <= length - at;
    }
};

class Registrations {
  public:
    bool add(Registered *registration); // false: no memory
    void remove(Registered *registration);
    // The registration that covers the whole piece of that memory, whether the memory names one or
    // not; nullptr: none.
    Registered *find(const tp::IovCursor &memory, const void *piece, uint64_t length) const;
    uint64_t count() const { return by_start_.size(); }
    uint64_t bytes() const { return bytes_; }

  private:
    std::multimap<uint64_t, Registered *> by_start_;
    uint64_t bytes_ = 0;
    uint64_t longest_ = 0; // longest registration so far
};

} // namespace dtrain::rdm
