// Copies from and to other ranks' memory with process_vm_readv() and process_vm_writev().
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/peer_processes.h"

#include "base/fd.h"
#include "base/random.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace dtrain::collectives {
namespace {

constexpr int end_ms = 200;

// Whether the process ends soon: shortly before a killed process is gone, the kernel can no longer
// read its memory.
bool ends(pid_t process) {
    const Fd fd(int(syscall(SYS_pidfd_open, process, 0)));
    if (!fd) return errno == ESRCH;
    pollfd end = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    return poll(&end, 1, end_ms) > 0;
}

using Copy = ssize_t (*)(pid_t, const iovec *, unsigned long, const iovec *, unsigned long,
                         unsigned long);

// Returns 0 or an error number.
int copy_all(Copy copy, pid_t process, void *own, uint64_t other, uint64_t bytes) {
    while (bytes > 0) {
        iovec local = {own, bytes}, remote = {reinterpret_cast<void *>(other), bytes};
        ssize_t n = copy(process, &local, 1, &remote, 1, 0);
        if (n <= 0) return n < 0 ? errno : EFAULT;
        own = static_cast<uint8_t *>(own) + n;
        other += uint64_t(n);
        bytes -= uint64_t(n);
    }
    return 0;
}

// Those of this process.
struct AllHere {
    std::mutex mutex;
    std::vector<const PeerProcesses *> all;
};
AllHere &all_here() {
    static AllHere &it = *new AllHere; // contexts may outlive what is destroyed at the end
    return it;
}

} // namespace

PeerProcesses::PeerProcesses(const Window &window, uint32_t ranks, uint32_t rank, bool allowed)
    : window_(window), rank_(rank), found_(ranks) {
    if (!allowed) {
        reach_ = Reach::not_all;
        return;
    }
    random_bytes(nonce_, sizeof nonce_);
    Introduction &own = window.flags(rank).introduction;
    own.process = getpid();
    own.address = reinterpret_cast<uintptr_t>(nonce_);
    std::memcpy(own.nonce, nonce_, sizeof nonce_);
    const std::lock_guard lock(all_here().mutex);
    all_here().all.push_back(this);
}

PeerProcesses::~PeerProcesses() {
    const std::lock_guard lock(all_here().mutex);
    std::erase(all_here().all, this);
}

bool PeerProcesses::are_in_reach() {
    if (reach_ != Reach::unknown) return reach_ == Reach::all;
    reach_ = Reach::all;
    for (uint32_t q = 0; q < found_.size(); q++)
        if (q != rank_ && !find(q)) reach_ = Reach::not_all;
    return reach_ == Reach::all;
}

bool PeerProcesses::find(uint32_t rank) {
    const Introduction &peer = window_.flags(rank).introduction;
    Introduction::Nonce nonce;
    const uint64_t address = peer.address;
    found_[rank] = peer.process;
    if (found_[rank] == getpid() && !is_here(rank, address)) return false;
    return copy_all(process_vm_readv, found_[rank], nonce, address, sizeof nonce) == 0 &&
           std::memcmp(nonce, peer.nonce, sizeof nonce) == 0;
}

bool PeerProcesses::is_here(uint32_t rank, uint64_t address) const {
    const std::lock_guard lock(all_here().mutex);
    return std::ranges::any_of(all_here().all, [&](const PeerProcesses *one) {
        return one->rank_ == rank && reinterpret_cast<uintptr_t>(one->nonce_) == address &&
               one->window_.is_shared_with(window_);
    });
}

Status PeerProcesses::read(uint32_t rank, void *to, const uint8_t *from, uint64_t bytes) const {
    const auto address = reinterpret_cast<uintptr_t>(from);
    return why(rank, address, bytes, copy_all(process_vm_readv, found_[rank], to, address, bytes));
}

Status PeerProcesses::write(uint32_t rank, uint8_t *to, const void *from, uint64_t bytes) const {
    const auto address = reinterpret_cast<uintptr_t>(to);
    void *const own = const_cast<void *>(from); // which is only read
    return why(rank, address, bytes,
               copy_all(process_vm_writev, found_[rank], own, address, bytes));
}

Status PeerProcesses::why(uint32_t rank, uint64_t address, uint64_t bytes, int error) const {
    if (error == 0) return DTRAIN_OK;
    if (error == ESRCH || ends(found_[rank]))
        return fail(DTRAIN_ERR_PEER, "its process (%d) is gone", found_[rank]);
    return fail(
        DTRAIN_ERR_IO,
        "the kernel cannot copy %llu bytes at %#llx of its process (%d), the address of its "
        "buffer: %s; if that is memory of a special kind, set option "
        "shm.copy=ring",
        static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address),
        found_[rank], strerrordesc_np(error));
}

} // namespace dtrain::collectives
