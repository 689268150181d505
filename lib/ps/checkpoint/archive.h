// Parts of tables on their way to checkpoints and back, done by a thread of their own: a server
// must not wait for a disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/checkpoint/checkpoint_folder.h"
#include "ps/placement/key_partition.h"
#include "ps/storage/row_image.h"
#include "ps/storage/shard_image.h"
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

// How the disk thread copies what others go on changing.
struct Copying {
    // Runs what it is given under their lock.
    std::function<void(const std::function<void()> &)> turn = [](const auto &work) { work(); };
    // Touches memory that will be written; false: there is none.
    std::function<bool(const Buffer &, uint64_t at, uint64_t bytes)> populate = &Buffer::populate;
};

// What a worker has asked a server for: to save its part of a table, or to read it.
struct ArchiveJob {
    RequestHeader request; // save or restore
    std::string name;      // of the table
    uint32_t server = 0;
    KeyPartition partition = KeyPartition(1); // of its keys, and how many servers there are
    // Save: to be written; restore: to be filled. One of them.
    std::unique_ptr<ShardImage> image;
    std::unique_ptr<RowImage> rows;
    uint64_t charged = 0;      // to the server's limit, as long as the image is there
    Status status = DTRAIN_OK; // the outcome
    std::string text;
    int64_t longest_turn = 0; // nanoseconds under the lock
    bool lent = false;        // the image is of no use, its memory may be for another

    std::shared_ptr<GradualCopy> copy() const; // that has to be done first; nullptr: none
};

class Archive {
  public:
    // DTRAIN_OK: the outcome follows, by Server::on_archived().
    virtual Status start(std::unique_ptr<ArchiveJob> job) = 0;

  protected:
    ~Archive() = default;
};

// Does it, now.
void run(ArchiveJob &job, CheckpointFolder &folder, data::Disk &disk,
         const Reserve &reserve = any_memory, const Copying &copying = {});
// Whether the checkpoint has all of this table, by what its files begin with; DTRAIN_ERR_NOT_FOUND:
// it does not have the table.
Status check_parts(const CheckpointFolder &folder, const Manifest &manifest,
                   const std::string &name, const TableParams &params);
// Looks at what the servers say that they have written of a table, `parts` in number, and notes in
// the manifest by what it is known. DTRAIN_ERR_CONFIG: it is not in the folder that is seen here.
// DTRAIN_ERR_PEER: BSP, and the servers are at different clocks, for a worker was lost.
Status add_parts(const CheckpointFolder &folder, Manifest &manifest, const std::string &name,
                 uint32_t parts, const TableParams &params);

// One job at a time, in the order in which they came: so what an earlier attempt still writes is
// replaced by the next one.
class ArchiveThread final : public Archive {
  public:
    // Called by the thread: Server::reserve(), Server::on_archived(); under the lock of the server.
    struct Owner {
        std::function<uint64_t(ArchiveJob &, uint64_t bytes)> reserve;
        std::function<void(std::unique_ptr<ArchiveJob>)> done;
        std::function<void(const std::function<void()> &)> locked;
    };
    ArchiveThread(const std::string &folder, data::Disk &disk, Owner owner);
    ~ArchiveThread() { stop(); }
    void stop(); // ends the job in work, drops those that wait
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
    std::thread thread_; // from the first job on
};

} // namespace dtrain::ps
