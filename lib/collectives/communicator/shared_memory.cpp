// Makes a communicator's window on rank 0, and attaches to it on the others.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/communicator/shared_memory.h"

#include "collectives/communicator/setup.h"

#include <algorithm>

namespace dtrain::collectives {
namespace {

// Limit of a window's size, because each rank maps all of it at the start.
constexpr uint64_t largest_window = 16 << 20;
constexpr int64_t window_patience = 30 * second;

KernelCopies copies_wanted(const Options &options) {
    const std::string_view wanted = options.text("shm.copy");
    return wanted == "ring"     ? KernelCopies::never
           : wanted == "kernel" ? KernelCopies::if_possible
                                : KernelCopies::if_faster;
}

tp::Distance distance_wanted(const Options &options) {
    return tp::distance_named(options.text("shm.distance"));
}

} // namespace

void SharedMemory::offer(Setup &setup) {
    const engine::Mesh &mesh = session_.mesh();
    transport::Device *device = mesh.device(ranks_.members[0]);
    if (session_.options().number("verify") != 0) return; // messages are checked, memory is not
    const bool same = std::ranges::all_of(
        ranks_.members, [&](uint32_t member) { return mesh.device(member) == device; });
    if (ranks_.size() == 1 || uint32_t(ranks_.size()) > max_window_ranks || !same ||
        !device->has(DTRAIN_TP_CAP_WINDOW) ||
        device->attr().window_handle_len > sizeof setup.handle)
        return;
    uint64_t bytes = std::min(uint64_t(session_.options().number("window.bytes")),
                              largest_window / uint64_t(ranks_.size()));
    Status s = DTRAIN_OK;
    session_.agent().locked([&] {
        s = Window::create(*device, uint32_t(ranks_.size()), bytes,
                           distance_wanted(session_.options()), setup.handle, opening_);
    });
    if (s == DTRAIN_OK)
        setup.window_bytes = bytes;
    else
        session_.agent().log().write(DTRAIN_LOG_WARN,
                                     "no shared memory for a communicator of %d ranks, "
                                     "messages are used instead: %s",
                                     ranks_.size(), error_text());
}

Status SharedMemory::attach(const Setup &setup, int64_t deadline_ns) {
    transport::Device *device = session_.mesh().device(ranks_.members[0]);
    Status s = DTRAIN_ERR_BUSY;
    auto attached = [&] {
        if (faults_.is_broken()) return true;
        s = faults_.lost(0);
        if (s != DTRAIN_OK) return true;
        session_.agent().locked([&] {
            dtrain_tp_ep_t *creator = nullptr;
            s = session_.mesh().endpoint(ranks_.members[0], creator);
            if (s == DTRAIN_OK)
                s = Window::attach(*device, creator, setup.handle, uint32_t(ranks_.size()),
                                   ranks_.rank, setup.window_bytes,
                                   distance_wanted(session_.options()), opening_);
        });
        return s != DTRAIN_ERR_BUSY;
    };
    session_.agent().wait_until(attached, deadline_ns);
    if (s != DTRAIN_ERR_BUSY) return s;
    if (faults_.is_broken()) return faults_.error();
    return fail(DTRAIN_ERR_TIMEOUT, "rank 0 did not share its memory in time");
}

Status SharedMemory::open(const Setup &setup, int64_t deadline_ns) {
    Status mine = DTRAIN_OK;
    if (ranks_.rank != 0) {
        // Messages work without a window. Waiting only half of the time leaves the other half for
        // agreeing on that.
        const int64_t now_ns = session_.agent().clock().now_ns();
        mine = attach(setup, now_ns + std::min(window_patience, (deadline_ns - now_ns) / 2));
    }
    if (mine != DTRAIN_OK)
        session_.agent().log().write(
            DTRAIN_LOG_WARN,
            "rank %u could not attach to the shared memory, messages are used instead: %s",
            ranks_.rank, error_text());
    engine::Mesh &mesh = session_.mesh();
    if (mine == DTRAIN_OK)
        peers_ =
            std::make_unique<PeerMemory>(*mesh.device(ranks_.members[0]), mesh, ranks_.members,
                                         *opening_, ranks_.rank, copies_wanted(session_.options()),
                                         session_.ranks_per_core() > 1, session_.agent().log());
    return mine;
}

void SharedMemory::close() {
    peers_.reset();
    used_.reset();
    opening_.reset();
}

} // namespace dtrain::collectives
