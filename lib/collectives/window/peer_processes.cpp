// Reads other ranks' memory with process_vm_readv().
// SPDX-License-Identifier: Apache-2.0
#include "collectives/window/peer_processes.h"

#include "base/fd.h"
#include "base/random.h"

#include <cerrno>
#include <cstring>
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

// Returns 0 or an error number.
int read_process(pid_t process, void *to, uint64_t from, uint64_t bytes) {
    while (bytes > 0) {
        iovec local = {to, bytes}, remote = {reinterpret_cast<void *>(from), bytes};
        ssize_t n = process_vm_readv(process, &local, 1, &remote, 1, 0);
        if (n <= 0) return n < 0 ? errno : EFAULT;
        to = static_cast<uint8_t *>(to) + n;
        from += uint64_t(n);
        bytes -= uint64_t(n);
    }
    return 0;
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
    found_[rank] = peer.process;
    return read_process(found_[rank], nonce, peer.address, sizeof nonce) == 0 &&
           std::memcmp(nonce, peer.nonce, sizeof nonce) == 0;
}

Status PeerProcesses::read(uint32_t rank, void *to, const uint8_t *from, uint64_t bytes) const {
    const auto address = reinterpret_cast<uintptr_t>(from);
    const int error = read_process(found_[rank], to, address, bytes);
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
