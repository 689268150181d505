// Allocates staging buffers, and registers them with the devices.
// SPDX-License-Identifier: Apache-2.0
#include "engine/staging.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace dtrain::engine {
namespace {

constexpr uint64_t usual_bytes = 2 << 20; // per context
constexpr uint64_t page = 4096;

} // namespace

Staging::Staging(Devices devices, uint64_t piece_bytes) : devices_(devices) { widen(piece_bytes); }

Staging::~Staging() {
    while (!buffers_.empty()) drop(buffers_.size() - 1);
}

void Staging::widen(uint64_t piece_bytes) {
    if (piece_bytes <= buffer_bytes_) return;
    buffer_bytes_ = (piece_bytes + page - 1) / page * page;
    most_ = std::max<size_t>(2, usual_bytes / buffer_bytes_);
    for (size_t i = buffers_.size(); i-- > 0;)
        if (buffers_[i].free) drop(i);
}

void *Staging::take(uint64_t bytes, bool needs_it) {
    if (bytes > buffer_bytes_) return std::aligned_alloc(64, (bytes + 63) & ~uint64_t{63});
    // Always reuses the same few buffers, which stay in the cache.
    for (size_t i = buffers_.size(); i-- > 0;)
        if (std::exchange(buffers_[i].free, false)) return buffers_[i].memory;
    return buffers_.size() < most_ || needs_it ? make() : nullptr;
}

void Staging::give_back(void *memory) {
    size_t i = 0;
    while (i < buffers_.size() && buffers_[i].memory != memory) i++;
    if (i == buffers_.size()) return std::free(memory); // it was allocated for one piece
    if (buffers_[i].bytes < buffer_bytes_ || buffers_.size() > most_) return drop(i);
    buffers_[i].free = true;
}

void *Staging::make() {
    void *memory = std::aligned_alloc(page, buffer_bytes_);
    if (memory == nullptr) return nullptr;
    buffers_.push_back(
        {.memory = memory,
         .bytes = buffer_bytes_,
         .free = false,
         .registration = memory::Registration::make_own(devices_, memory, buffer_bytes_)});
    return memory;
}

void Staging::drop(size_t i) {
    buffers_[i].registration.reset();
    std::free(buffers_[i].memory);
    buffers_.erase(buffers_.begin() + ptrdiff_t(i));
}

} // namespace dtrain::engine
