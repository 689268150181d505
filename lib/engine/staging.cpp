// SPDX-License-Identifier: Apache-2.0
#include "engine/staging.h"

#include <algorithm>
#include <cstdlib>

namespace dtrain::engine {
namespace {

constexpr uint64_t usual_bytes = 2 << 20; // per context
constexpr uint64_t page = 4096;

} // namespace

Staging::Staging(Devices devices, uint64_t buffer_bytes)
    : devices_(devices), buffer_bytes_((buffer_bytes + page - 1) / page * page),
      most_(std::max<size_t>(2, usual_bytes / buffer_bytes_)) {}

Staging::~Staging() {
    registered_.clear();
    for (void *buffer : free_) std::free(buffer);
}

void *Staging::take(uint64_t bytes, bool needs_it) {
    if (bytes > buffer_bytes_) return std::aligned_alloc(64, (bytes + 63) & ~uint64_t{63});
    if (!free_.empty()) {
        void *buffer = free_.back();
        free_.pop_back();
        return buffer;
    }
    return made_ < most_ || needs_it ? make() : nullptr;
}

void Staging::give_back(void *buffer, uint64_t bytes) {
    if (bytes > buffer_bytes_) return std::free(buffer);
    if (made_ > most_) return drop(buffer);
    free_.push_back(buffer);
}

void *Staging::make() {
    void *buffer = std::aligned_alloc(page, buffer_bytes_);
    if (buffer == nullptr) return nullptr;
    made_++;
    if (auto registration = memory::Registration::make_own(devices_, buffer, buffer_bytes_))
        registered_.push_back(std::move(registration));
    return buffer;
}

void Staging::drop(void *buffer) {
    std::erase_if(registered_, [buffer](const auto &r) { return r->begin() == buffer; });
    std::free(buffer);
    made_--;
}

} // namespace dtrain::engine
