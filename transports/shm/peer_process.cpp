// Copies from and to another process's memory with process_vm_readv() and process_vm_writev().
// SPDX-License-Identifier: Apache-2.0
#include "shm/peer_process.h"

#include <sys/uio.h>

namespace dtrain::shm {
namespace {

iovec piece(const void *address, uint64_t bytes) { return {const_cast<void *>(address), bytes}; }
iovec piece(uint64_t address, uint64_t bytes) { return {reinterpret_cast<void *>(address), bytes}; }

} // namespace

bool PeerProcess::find(const Fd &fd, uint64_t address, const Nonce &expected) {
    Nonce found{};
    pid_ = peer_pid(fd);
    if (!read(found.data(), address, found.size()) || found != expected) pid_ = 0;
    return is_in_reach();
}

bool PeerProcess::read(void *to, uint64_t from, uint64_t bytes) const {
    iovec local = piece(to, bytes), remote = piece(from, bytes);
    return pid_ > 0 &&
           process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

bool PeerProcess::write(uint64_t to, const void *from, uint64_t bytes) const {
    iovec local = piece(from, bytes), remote = piece(to, bytes);
    return pid_ > 0 &&
           process_vm_writev(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

} // namespace dtrain::shm
