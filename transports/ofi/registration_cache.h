// Registrations of memory that the caller has not registered.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/memory_watch.h"
#include "common/range_cache.h"
#include "ofi/memory.h"

namespace dtrain::ofi {

// Registrations are made for a message. With a limit above 0 (option ofi.cache) they are kept for
// later messages, as long as the memory is watched (memory_watch.h) and has not changed.
class RegistrationCache {
    using Kept = tp::RangeCache<Registration>;

  public:
    struct GiveBack {
        Kept *kept = nullptr; // nullptr: it is not kept
        Kept::Entry *entry = nullptr;
        void operator()(Registration *registration) const {
            if (kept)
                kept->release(entry);
            else
                delete registration;
        }
    };
    using Held = std::unique_ptr<Registration, GiveBack>;

    RegistrationCache(const tp::Host &host, tp::Secrets &secrets, const Fabric &fabric)
        : host_(host), secrets_(secrets), fabric_(fabric) {}
    void open(uint64_t limit);

    // An empty result, with libfabric's error in *error, if it is impossible.
    Held hold(void *address, uint64_t length, int *error);
    // Drops registrations of memory that has changed. Cheap; to be called periodically.
    void look() {
        if (kept_ && watch_->position() != position_) settle();
    }
    // Adds the cache's own counts.
    void count(rdm::RegistrationCounts *counts) const;
    // Peers that know its keys must not access the memory any more.
    void revoke(const Registration &registration) {
        if (kept_) kept_->forget(registration.start, registration.length);
    }

  private:
    bool settle();

    const tp::Host &host_;
    tp::Secrets &secrets_;
    const Fabric &fabric_;
    uint64_t hits_ = 0, misses_ = 0;
    std::shared_ptr<tp::MemoryWatch> watch_;
    uint64_t position_ = 0; // position in the watch's reports
    std::unique_ptr<Kept> kept_;
};

} // namespace dtrain::ofi
