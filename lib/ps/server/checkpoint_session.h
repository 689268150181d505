// The saves and the restore of a table that are in progress, and the memory charged for them.
// SPDX-License-Identifier: Apache-2.0
//
// A restore has two phases, so that one or several tables are restored on all servers or on none.
// First each server reads and checks its part and keeps it apart. When all have done so, the worker
// tells them to take it over, which cannot fail; otherwise it tells them to drop it. If the worker
// leaves or is lost, its restore is dropped. Requests may arrive out of order: their sequence
// numbers tell which restore they belong to.
#pragma once
#include "ps/checkpoint/archive.h"
#include "ps/server/response.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace dtrain::ps {

class CheckpointSession {
  public:
    explicit CheckpointSession(uint32_t workers) : restores_from_(workers) {}

    uint64_t bytes() const { return bytes_; } // of images that are saved or restored

    // A job has started to save an image, for which it is charged.
    void begin_save(uint64_t charged) { bytes_ += charged; }

    // Reason::none: the worker may begin this restore; it has abandoned its earlier one.
    Answer admit_restore(const RequestHeader &header);
    void begin_restore(const RequestHeader &header); // its job has started
    // Charges bytes to the job of the current restore; 0: the job was abandoned.
    uint64_t reserve(ArchiveJob &job, uint64_t bytes);

    // A job has ended. awaited: its request waits for the answer. Releases what is not needed any
    // more. True: the job has read data for the current restore; call keep().
    bool end(ArchiveJob &job, bool awaited);
    void keep(std::unique_ptr<ArchiveJob> &&job) { restore_->read = std::move(job); }
    // Ends the restore that the worker has begun before this request, and returns its data.
    // nullptr: there is none, or it was not read completely; then nothing changes.
    std::unique_ptr<ArchiveJob> take(const RequestHeader &header);
    // Drops the restore that the worker has begun before this request, also if it comes later.
    void discard(const RequestHeader &header);
    void leave(uint32_t worker);

  private:
    struct Restore { // from the request until it is taken over or dropped
        uint32_t worker;
        uint64_t sequence;
        std::unique_ptr<ArchiveJob> read; // set when all data has been read
    };
    // Whether the current restore is of that worker, by a request before that one.
    bool restores(uint32_t worker, uint64_t before = UINT64_MAX) const {
        return restore_ && restore_->worker == worker && restore_->sequence < before;
    }
    bool is_current(const RequestHeader &header) const {
        return restores(header.worker) && restore_->sequence == header.sequence;
    }
    void drop();

    uint64_t bytes_ = 0;
    std::optional<Restore> restore_;      // one at a time
    std::vector<uint64_t> restores_from_; // by worker: restore requests before this are canceled
};

} // namespace dtrain::ps
