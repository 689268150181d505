// Memory that the network card may access.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/secrets.h"
#include "ofi/fabric.h"
#include "rdm/registrations.h"

namespace dtrain::ofi {

// What a peer must know to write to or read from memory here.
struct Target {
    uint64_t address = 0, key = 0, length = 0;
};

class Registration : public rdm::Registered {
  public:
    // nullptr: impossible; *error is libfabric's error.
    static std::unique_ptr<Registration> make(tp::Secrets &secrets, const Fabric &fabric,
                                              void *address, uint64_t length, int *error);
    // Registers the same memory with another key; the old key becomes invalid. False: it has none
    // now.
    bool renew(tp::Secrets &secrets, const Fabric &fabric);
    bool is_usable() const { return bool(handle_); }
    void *descriptor() const { return fi_mr_desc(handle_.get()); }
    Target target(const void *address, uint64_t bytes) const {
        const auto at = reinterpret_cast<uintptr_t>(address);
        return {virtual_ ? at : at - start, fi_mr_key(handle_.get()), bytes};
    }

  private:
    Handle<fid_mr> handle_;
    bool virtual_ = false; // peers use virtual addresses, not offsets
};

} // namespace dtrain::ofi
