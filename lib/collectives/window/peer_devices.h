// Access to the other ranks' memory on an accelerator: imported from their processes at its first
// use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "accel/direct_buffers.h"
#include "base/log.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace dtrain::collectives {

// import() is called by one operation at a time, under the agent's lock, as is the destructor;
// import_wanted() by any thread.
class PeerDevices {
  public:
    PeerDevices(uint32_t ranks, Log &log) : log_(log), imported_(ranks) {} // which outlives it
    ~PeerDevices();
    PeerDevices(const PeerDevices &) = delete;
    PeerDevices &operator=(const PeerDevices &) = delete;

    // The address of a buffer of another process, or nullptr until import() has succeeded. bytes:
    // of the buffer.
    uint8_t *find(uint32_t rank, const accel::DirectBuffer &buffer, uint64_t bytes);
    // May take milliseconds. The buffer must lie in the allocation that it names.
    Status import(accel::Domain &domain, uint32_t rank, const accel::DirectBuffer &buffer,
                  uint64_t bytes);

    // Notes what cannot be imported now, since a stream waits; import_wanted() does it before a
    // later call, if no stream waits then.
    void want(uint32_t rank, const accel::DirectBuffer &buffer, uint64_t bytes);
    void import_wanted(accel::Domain &domain);

    // What could not be done once is not tried again; after a warning with the last error's text.
    bool has_failed() const { return failed_; }
    void note_failure();

  private:
    struct Imported {
        accel::SharedAllocation allocation;
        accel::Domain *domain;
        dtrain_dv_mem_t *memory;
        uint64_t used; // call number of find() at the last use
    };
    static constexpr size_t most = 32; // per rank; the least recently used is released
    // By import_wanted(), per rank: what another operation has just found stays among the others.
    static constexpr size_t most_at_once = most / 2;

    struct Wanted {
        uint32_t rank;
        accel::DirectBuffer buffer;
        uint64_t bytes;
    };
    uint8_t *find_imported(uint32_t rank, const accel::DirectBuffer &buffer, uint64_t bytes);
    Status add(accel::Domain &domain, uint32_t rank, const accel::DirectBuffer &buffer,
               uint64_t bytes);

    Log &log_;
    std::mutex mutex_; // of what follows
    std::vector<Wanted> wanted_;
    std::atomic<bool> wants_{false};              // wanted_ is not empty
    std::vector<std::vector<Imported>> imported_; // by rank
    uint64_t calls_ = 0;
    std::atomic<bool> failed_{false};
};

} // namespace dtrain::collectives
