// Reads and writes the memory of the window's other ranks through the kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/window/window.h"

#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace dtrain::collectives {

// Each rank publishes its process number in the window, with a nonce that also lies in its memory.
// Whether the kernel permits reading the others' memory (same user, ptrace_scope, a container's
// seccomp filter) and knows them under these numbers (pid namespaces) can only be found out by
// trying. It always permits the own process, so a rank that says that it lies there must do so.
class PeerProcesses {
  public:
    // Constructed before the ranks agree to use the window, which outlives this. allowed: option
    // shm.copy.
    PeerProcesses(const Window &window, uint32_t ranks, uint32_t rank, bool allowed);
    ~PeerProcesses();
    PeerProcesses(const PeerProcesses &) = delete;
    PeerProcesses &operator=(const PeerProcesses &) = delete;

    // Whether all ranks can be read. Tried once, by the operation whose turn it is.
    bool are_in_reach();
    // Copy all bytes, or fail with the reason. from, to: an address in that rank's process.
    Status read(uint32_t rank, void *to, const uint8_t *from, uint64_t bytes) const;
    Status write(uint32_t rank, uint8_t *to, const void *from, uint64_t bytes) const;

  private:
    bool find(uint32_t rank);
    bool is_here(uint32_t rank, uint64_t address) const;
    Status why(uint32_t rank, uint64_t address, uint64_t bytes, int error) const;

    enum class Reach : uint8_t { unknown, all, not_all };
    const Window &window_;
    const uint32_t rank_;
    std::vector<pid_t> found_; // by rank
    Reach reach_ = Reach::unknown;
    Introduction::Nonce nonce_{};
};

} // namespace dtrain::collectives
