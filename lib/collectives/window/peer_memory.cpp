// Maps the other ranks' registered memory.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/peer_memory.h"

#include <algorithm>
#include <cstring>

namespace dtrain::collectives {

SharedBuffers SharedBuffers::find(memory::Registry &registry, const transport::Device &device,
                                  const void *send, const void *recv, uint64_t bytes,
                                  engine::Request &request) {
    SharedBuffers found;
    if (device.attr().window_handle_len > sizeof found.handle) return found;
    memory::Registration *memory = registry.hold(recv, bytes);
    if (memory == nullptr) return found;
    const memory::SharedPages *pages = memory->shared();
    if (&pages->device() != &device || !memory->covers(send, bytes)) {
        memory->users.fetch_sub(1);
        return found;
    }
    request.holds[2] = &memory->users;
    std::memcpy(found.handle, pages->handle(), device.attr().window_handle_len);
    found.bytes = pages->bytes();
    found.send = uint64_t(static_cast<const uint8_t *>(send) - pages->address());
    found.recv = uint64_t(static_cast<const uint8_t *>(recv) - pages->address());
    return found;
}

PeerMemory::PeerMemory(transport::Device &device, engine::Mesh &mesh,
                       std::span<const uint32_t> members, const Window &window, uint32_t rank,
                       KernelCopies wanted, bool share_cores, Log &log)
    : processes(window, uint32_t(members.size()), rank, wanted != KernelCopies::never),
      copies(wanted), ranks_share_cores(share_cores), accelerators(uint32_t(members.size()), log),
      device_(device), mesh_(mesh), members_(members), mapped_(members.size()) {}

PeerMemory::~PeerMemory() {
    for (auto &of_rank : mapped_)
        for (Mapped &m : of_rank) device_.ops().window_free(m.window);
}

uint8_t *PeerMemory::find(uint32_t rank, const SharedBuffers &buffers) {
    calls_++;
    for (Mapped &m : mapped_[rank])
        if (m.bytes == buffers.bytes &&
            std::memcmp(m.handle, buffers.handle, sizeof m.handle) == 0) {
            m.used = calls_;
            return m.address;
        }
    return nullptr;
}

Status PeerMemory::attach(uint32_t rank, const SharedBuffers &buffers) {
    dtrain_tp_ep_t *owner = nullptr;
    if (Status s = mesh_.endpoint(members_[rank], owner); s != DTRAIN_OK) return s;
    Mapped m = {.handle = {},
                .bytes = buffers.bytes,
                .window = nullptr,
                .address = nullptr,
                .used = calls_};
    Status s = device_.ops().window_attach(device_.dev(), owner, buffers.handle, buffers.bytes,
                                           memory::sharing_members, 1, &m.window);
    if (s != DTRAIN_OK) return s;
    std::memcpy(m.handle, buffers.handle, sizeof m.handle);
    m.address = static_cast<uint8_t *>(device_.ops().window_address(m.window));
    auto &of_rank = mapped_[rank];
    if (of_rank.size() == most) {
        auto oldest =
            std::min_element(of_rank.begin(), of_rank.end(),
                             [](const Mapped &a, const Mapped &b) { return a.used < b.used; });
        device_.ops().window_free(oldest->window);
        of_rank.erase(oldest);
    }
    of_rank.push_back(m);
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
