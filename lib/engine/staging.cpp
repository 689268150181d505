// SPDX-License-Identifier: Apache-2.0
#include "engine/staging.h"

#include <algorithm>
#include <cstdlib>

namespace dtrain::engine {
namespace {

constexpr uint64_t usual_bytes = 2 << 20; // per context
constexpr uint64_t page = 4096;

Staging::Devices worth_it(Staging::Devices devices) {
    auto writes = [](const auto &device) { return device->has(DTRAIN_TP_CAP_PUT); };
    return std::any_of(devices.begin(), devices.end(), writes) ? devices : Staging::Devices{};
}

} // namespace

Staging::Staging(Devices devices, uint64_t buffer_bytes)
    : devices_(worth_it(devices)), buffer_bytes_((buffer_bytes + page - 1) / page * page),
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
    if (devices_.empty()) return buffer;
    dtrain_mem_params_t params = {};
    params.address = buffer;
    params.length = buffer_bytes_;
    std::unique_ptr<memory::Registration> registration;
    // Without one, as when too much memory is locked, transports register it for each message.
    if (memory::Registration::make(devices_, params, registration) == DTRAIN_OK)
        registered_.push_back(std::move(registration));
    return buffer;
}

void Staging::drop(void *buffer) {
    std::erase_if(registered_, [buffer](const auto &r) { return r->begin() == buffer; });
    std::free(buffer);
    made_--;
}

} // namespace dtrain::engine
