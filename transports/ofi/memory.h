// Memory that the network card may reach.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ofi/fabric.h"
#include "rdm/wire.h"

#include <map>

namespace dtrain::ofi {

// What a peer has to know to write to or read from memory here.
struct Target {
    uint64_t address = 0, key = 0, length = 0;
};

class Registration : public dtrain_tp_mr {
  public:
    // nullptr, with libfabric's error: impossible.
    static std::unique_ptr<Registration> make(const tp::Host &host, const Fabric &fabric,
                                              void *address, uint64_t length, int *error);
    void *descriptor() const { return fi_mr_desc(handle_.get()); }
    bool covers(const void *address, uint64_t length) const {
        const auto at = reinterpret_cast<uintptr_t>(address) - start_;
        return at <= length_ && length <= length_ - at;
    }
    Target target(const void *address, uint64_t length) const {
        const auto at = reinterpret_cast<uintptr_t>(address);
        return {virtual_ ? at : at - start_, fi_mr_key(handle_.get()), length};
    }
    uint64_t start() const { return start_; }
    uint64_t length() const { return length_; }

  private:
    Handle<fid_mr> handle_;
    uintptr_t start_ = 0;
    uint64_t length_ = 0;
    bool virtual_ = false; // peers name virtual addresses, not offsets
};

// The registrations of the caller, by address. What is in one is not registered again.
class Registrations {
  public:
    bool add(Registration *registration); // false: no memory
    void remove(Registration *registration);
    // The one that covers all of it, or nullptr.
    Registration *find(const void *address, uint64_t length) const;
    uint64_t count() const { return by_start_.size(); }
    uint64_t bytes() const { return bytes_; }

  private:
    std::multimap<uint64_t, Registration *> by_start_;
    uint64_t bytes_ = 0;
    uint64_t longest_ = 0; // of all that ever were
};

} // namespace dtrain::ofi
