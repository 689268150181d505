// Registrations of memory that the caller has not registered.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/registration_cache.h"

namespace dtrain::ofi {

void RegistrationCache::open(uint64_t limit) {
    if (!limit) return;
    std::string why;
    watch_ = tp::MemoryWatch::get(&why);
    if (!watch_) {
        host_.log(DTRAIN_LOG_WARN,
                  "ofi: option ofi.cache has no effect, because the kernel does not report which "
                  "memory is freed (%s)",
                  why.c_str());
        return;
    }
    kept_.reset(new (std::nothrow) Kept(limit));
    position_ = watch_->position();
}

// False: memory is changing right now, so the cache's state is unknown.
bool RegistrationCache::settle() {
    return kept_ && watch_->settle(&position_, [this](uint64_t start, uint64_t length) {
        kept_->forget(start, length);
    });
}

RegistrationCache::Held RegistrationCache::hold(void *address, uint64_t length, int *error) {
    const auto start = reinterpret_cast<uintptr_t>(address);
    const bool settled = settle();
    if (Kept::Entry *entry = settled ? kept_->find(start, length) : nullptr) {
        hits_++;
        return {entry->value(), {kept_.get(), entry}};
    }
    // The memory is watched before it is registered, so that changes in between are reported.
    const bool watched = settled && watch_->watch(start, length);
    auto made = Registration::make(secrets_, fabric_, address, length, error);
    if (!made && kept_ && kept_->trim(0)) // that may have made room for it
        made = Registration::make(secrets_, fabric_, address, length, error);
    if (!made) return nullptr;
    misses_++;
    if (Kept::Entry *entry = watched ? kept_->add(start, length, std::move(made)) : nullptr)
        return {entry->value(), {kept_.get(), entry}};
    return Held(made.release());
}

void RegistrationCache::count(rdm::RegistrationCounts *counts) const {
    counts->hits = hits_;
    counts->misses = misses_;
    if (!kept_) return;
    counts->kept = kept_->count();
    counts->kept_bytes = kept_->bytes();
    counts->evictions = kept_->evictions();
}

} // namespace dtrain::ofi
