// The gradual copies of one shard that are in progress. All calls need the shard's lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/gradual_copy.h"

#include <memory>
#include <utility>
#include <vector>

namespace dtrain::ps {

// Its destructor cancels the copies, since the copied memory goes with the shard.
template <class Copy> class Copies {
  public:
    Copies() = default;
    ~Copies() {
        for (const auto &copy : going_) copy->cancel();
    }
    Copies(const Copies &) = delete;
    Copies &operator=(const Copies &) = delete;

    bool any() const { return !going_.empty(); }
    void add(std::shared_ptr<Copy> copy) {
        std::erase_if(going_, [](const auto &own) { // drops copies whose image is gone
            if (own.use_count() == 1) own->cancel();
            return own.use_count() == 1;
        });
        going_.push_back(std::move(copy));
    }
    // For a copy that is done or no longer needed.
    void end(GradualCopy &copy) {
        copy.cancel();
        std::erase_if(going_, [&](const auto &own) { return own.get() == &copy; });
    }
    template <class F> void for_each(F &&f) const {
        for (const auto &copy : going_) f(*copy);
    }

  private:
    std::vector<std::shared_ptr<Copy>> going_;
};

} // namespace dtrain::ps
