// Access to the other ranks' memory: registered memory is mapped here at its first use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/window/peer_devices.h"
#include "collectives/window/peer_processes.h"
#include "collectives/window/window.h"
#include "engine/mesh.h"
#include "memory/registry.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::collectives {

// Where a rank's buffers lie in shared memory; small enough for a window's header.
struct SharedBuffers {
    uint8_t handle[16] = {};
    uint64_t bytes = 0;          // size of the shared memory; 0: the buffers are not shared
    uint64_t send = 0, recv = 0; // offsets

    // Keeps the registration in use until the request is complete.
    static SharedBuffers find(memory::Registry &registry, const transport::Device &device,
                              const void *send, const void *recv, uint64_t bytes,
                              engine::Request &request);
    // Whether both buffers lie inside.
    bool cover(uint64_t length) const {
        return bytes >= length && send <= bytes - length && recv <= bytes - length;
    }
};

// Option shm.copy: whether the kernel copies unregistered memory from process to process.
enum class KernelCopies : uint8_t { never, if_faster, if_possible };

// Used by one operation at a time; attach() and the destructor run under the agent's lock.
class PeerMemory {
  public:
    // members: rank -> member of the mesh. They and the window must outlive this.
    PeerMemory(transport::Device &device, engine::Mesh &mesh, std::span<const uint32_t> members,
               const Window &window, uint32_t rank, KernelCopies wanted, bool share_cores,
               Log &log);
    ~PeerMemory();
    const transport::Device &device() const { return device_; }

    // The address of the shared memory in this process, or nullptr until attach() has succeeded.
    uint8_t *find(uint32_t rank, const SharedBuffers &buffers);
    // Maps the memory. BUSY: call it again after progress.
    Status attach(uint32_t rank, const SharedBuffers &buffers);

    PeerProcesses processes; // for unregistered memory
    const KernelCopies copies;
    const bool ranks_share_cores;
    uint32_t by_kernel = 0;   // number of calls for which that was faster
    PeerDevices accelerators; // for memory there

  private:
    struct Mapped {
        uint8_t handle[sizeof SharedBuffers::handle];
        uint64_t bytes;
        dtrain_tp_win_t *window;
        uint8_t *address;
        uint64_t used; // call number of find() at the last use
    };
    static constexpr size_t most = 32; // per rank; the least recently used is unmapped

    transport::Device &device_;
    engine::Mesh &mesh_;
    const std::span<const uint32_t> members_;
    std::vector<std::vector<Mapped>> mapped_; // by rank
    uint64_t calls_ = 0;
};

} // namespace dtrain::collectives
