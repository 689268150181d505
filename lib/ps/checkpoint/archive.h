// Saves parts of tables to checkpoints and restores them, in a separate thread, since a server must
// not wait for a disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/checkpoint/checkpoint_folder.h"
#include "ps/placement/key_partition.h"
#include "ps/storage/image.h"
#include "ps/table/protocol.h"
#include "ps/table/reserve.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace dtrain::ps {

// How the disk thread copies values that other threads keep changing.
struct Copying {
    // Runs the given function under the lock of those threads.
    std::function<void(const std::function<void()> &)> turn = [](const auto &work) { work(); };
    // Allocates the pages of memory that will be written; false: there is no memory.
    std::function<bool(const Buffer &, uint64_t at, uint64_t bytes)> populate = &Buffer::populate;
};

// A worker's request to a server: to save its part of a table, or to read it from a checkpoint.
struct ArchiveJob {
    RequestHeader request; // save or restore
    std::string name;      // of the table
    uint32_t server = 0;
    KeyPartition partition = KeyPartition(1); // of the keys; also has the number of servers
    std::unique_ptr<Image> image;             // to write (save) or to fill (restore)
    uint64_t charged = 0;      // bytes charged to the server's limit while the image exists
    Status status = DTRAIN_OK; // the outcome
    std::string text;
    int64_t longest_turn = 0; // in nanoseconds under the lock
    bool lent = false;        // the image is obsolete, and its memory may serve another one

    // The copy that must be finished before the image is written; nullptr: none.
    std::shared_ptr<GradualCopy> copy() const { return image != nullptr ? image->copy : nullptr; }
};

class Archive {
  public:
    // DTRAIN_OK: Server::on_archived() is called later with the outcome.
    virtual Status start(std::unique_ptr<ArchiveJob> job) = 0;

  protected:
    ~Archive() = default;
};

// Runs a job in the calling thread.
void run(ArchiveJob &job, CheckpointFolder &folder, data::Disk &disk,
         const Reserve &reserve = any_memory, const Copying &copying = {});
// Checks by the headings of its files that the checkpoint has all of this table.
// DTRAIN_ERR_NOT_FOUND: it does not have the table.
Status check_parts(const CheckpointFolder &folder, const Manifest &manifest,
                   const std::string &name, const TableParams &params);
// Checks the files of a table that the servers have written, `parts` in number, and enters their
// sizes and checksums in the manifest. DTRAIN_ERR_CONFIG: a file is not in the folder that this
// process sees. DTRAIN_ERR_PEER: under BSP, the servers are at different clocks since a worker was
// lost.
Status add_parts(const CheckpointFolder &folder, Manifest &manifest, const std::string &name,
                 uint32_t parts, const TableParams &params);

// Runs one job at a time, in the order of start(), so that a later attempt replaces the files of an
// earlier one.
class ArchiveThread final : public Archive {
  public:
    // Called by the thread. reserve and done call Server::reserve() and Server::on_archived();
    // locked runs a function under the server's lock.
    struct Owner {
        std::function<uint64_t(ArchiveJob &, uint64_t bytes)> reserve;
        std::function<void(std::unique_ptr<ArchiveJob>)> done;
        std::function<void(const std::function<void()> &)> locked;
    };
    ArchiveThread(const std::string &folder, data::Disk &disk, Owner owner);
    ~ArchiveThread() { stop(); }
    void stop(); // finishes the current job and drops the waiting ones
    Status start(std::unique_ptr<ArchiveJob> job) override;

  private:
    void work();
    void take_turn(ArchiveJob &job, const std::function<void()> &work) const;

    CheckpointFolder folder_;
    data::Disk &disk_;
    const Owner owner_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::unique_ptr<ArchiveJob>> jobs_;
    bool ending_ = false;
    std::thread thread_; // started with the first job
};

} // namespace dtrain::ps
