// Creates the shared memory of a window, and reserves and releases space in its rings.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/window.h"

#include "wire/control.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace dtrain::collectives {
namespace {

constexpr uint64_t least_chunk = 1024;
constexpr uint64_t largest_exchange = 32 << 10;

// Ranks of libraries that lay a window out differently must not share one. They never are in one
// job, since who joins must have the coordinator's version (cluster/control/join_roster.cpp).
static_assert(wire::control_version == 5 && sizeof(Header) == 128 && sizeof(Counter) == 128 &&
                  sizeof(Introduction) == 128 && sizeof(accel::DirectBuffer) == 96 &&
                  sizeof(DeviceOffer) == 256 && sizeof(RankFlags) == 2432 &&
                  offsetof(RankFlags, introduction) == 1664,
              "a window that changes needs another control_version, and this line the new sizes");

} // namespace

Window::Window(transport::Device &device, uint32_t ranks, uint64_t area_bytes,
               tp::Distance distance)
    : device_(device), ranks_(ranks),
      chunk_bytes_(
          std::max(least_chunk, std::bit_floor(area_bytes / (uint64_t{ring_blocks} * ranks)))),
      exchange_bytes_(std::min(largest_exchange, ring_blocks * chunk_bytes_)),
      ring_bytes_(ring_blocks * chunk_bytes_ * ranks), stride_(flags_bytes + ring_bytes_),
      writes_(distance) {}

Status Window::create(transport::Device &device, uint32_t ranks, uint64_t area_bytes,
                      tp::Distance distance, void *handle, std::unique_ptr<Window> &out) {
    std::unique_ptr<Window> made(new Window(device, ranks, area_bytes, distance));
    Status s = device.ops().window_create(device.dev(), made->total_bytes(), ranks, 0, handle,
                                          &made->window_);
    if (s != DTRAIN_OK) return s;
    made->opened(handle);
    out = std::move(made);
    return DTRAIN_OK;
}

Status Window::attach(transport::Device &device, dtrain_tp_ep_t *creator, const void *handle,
                      uint32_t ranks, uint32_t rank, uint64_t area_bytes, tp::Distance distance,
                      std::unique_ptr<Window> &out) {
    std::unique_ptr<Window> made(new Window(device, ranks, area_bytes, distance));
    Status s = device.ops().window_attach(device.dev(), creator, handle, made->total_bytes(), ranks,
                                          rank, &made->window_);
    if (s != DTRAIN_OK) return s;
    made->opened(handle);
    out = std::move(made);
    return DTRAIN_OK;
}

void Window::opened(const void *handle) {
    std::memcpy(handle_.data(), handle, device_.attr().window_handle_len);
    base_ = static_cast<uint8_t *>(device_.ops().window_address(window_));
}

uint64_t Window::reserve(uint64_t block_bytes, uint64_t count) {
    if (block_bytes == 0) return reserved_;
    uint64_t first = (reserved_ + block_bytes - 1) / block_bytes * block_bytes;
    reserved_ = first + block_bytes * count;
    return first;
}

bool Window::released(uint64_t position) {
    if (position <= ring_bytes_ + released_) return true;
    uint64_t least = UINT64_MAX;
    for (uint32_t q = 0; q < ranks_; q++)
        least = std::min(least, flags(q).released.value.load(std::memory_order_acquire));
    released_ = least;
    return position <= ring_bytes_ + released_;
}

Window::~Window() {
    if (window_ != nullptr) device_.ops().window_free(window_);
}

} // namespace dtrain::collectives
