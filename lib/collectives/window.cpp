// SPDX-License-Identifier: Apache-2.0
#include "collectives/window.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

constexpr uint64_t page = 4096;

} // namespace

Window::Window(transport::Device &device, uint32_t ranks, uint64_t area_bytes)
    : device_(device), ranks_(ranks),
      chunk_bytes_(std::max(page, area_bytes / (pipeline_depth * ranks) / page * page)),
      stride_(flags_bytes + 2 * exchange_bytes + pipeline_depth * ranks * chunk_bytes_) {}

Status Window::create(transport::Device &device, uint32_t ranks, uint64_t area_bytes, void *handle,
                      std::unique_ptr<Window> &out) {
    std::unique_ptr<Window> made(new Window(device, ranks, area_bytes));
    Status s = device.ops().window_create(device.dev(), made->total_bytes(), ranks, 0, handle,
                                          &made->window_);
    if (s != DTRAIN_OK) return s;
    made->base_ = static_cast<uint8_t *>(device.ops().window_address(made->window_));
    out = std::move(made);
    return DTRAIN_OK;
}

Status Window::attach(transport::Device &device, dtrain_tp_ep_t *creator, const void *handle,
                      uint32_t ranks, uint32_t rank, uint64_t area_bytes,
                      std::unique_ptr<Window> &out) {
    std::unique_ptr<Window> made(new Window(device, ranks, area_bytes));
    Status s = device.ops().window_attach(device.dev(), creator, handle, made->total_bytes(), ranks,
                                          rank, &made->window_);
    if (s != DTRAIN_OK) return s;
    made->base_ = static_cast<uint8_t *>(device.ops().window_address(made->window_));
    out = std::move(made);
    return DTRAIN_OK;
}

Window::~Window() {
    if (window_ != nullptr) device_.ops().window_free(window_);
}

} // namespace dtrain::collectives
