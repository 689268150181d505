// A worker's part in checkpoints: it begins them, tells all servers to write their parts, and
// completes them; for a restore it chooses one and tells all servers to read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/checkpoint/checkpoint_folder.h"
#include "ps/checkpoint/lineage.h"
#include "ps/table/protocol.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>

namespace dtrain::ps {

class Node;
struct ClientTable;

// Thread-safe. One save or restore runs at a time; other callers wait for it.
class Checkpointer {
  public:
    explicit Checkpointer(Node &node);

    struct Interval {
        uint64_t steps = 0; // 0: not by steps
        int64_t ns = 0;     // 0: not by time
    };
    // Blocking. With an interval, does nothing until the interval has passed since the last
    // checkpoint that was saved or restored here, or since the first call.
    Status save(std::span<ClientTable *const> tables, uint64_t step, const Interval &interval,
                int64_t timeout_ns, bool &saved);
    // step: the checkpoint to restore, or UINT64_MAX for the newest with these tables; receives the
    // restored step.
    Status restore(std::span<ClientTable *const> tables, int64_t deadline_ns, uint64_t &step,
                   Lineage::Point *point = nullptr);
    // Continues from the point that another worker of the job has restored.
    void take(const Lineage::Point &point, const ClientTable &table);
    Status newest(ClientTable *table, uint64_t &step);
    // Blocking: waits until the newest checkpoint with these tables is not that of the step `after`
    // (UINT64_MAX: any is good). Logs now and then for what it waits.
    Status wait(std::span<ClientTable *const> tables, uint64_t after, int64_t deadline_ns,
                uint64_t &step);

  private:
    Status check_folder() const;
    bool due(uint64_t step, const Interval &interval);
    // Holds the right to save or restore; one thread at a time.
    class Turn {
      public:
        explicit Turn(Checkpointer &owner) : owner_(owner) {}
        ~Turn();
        Status take(int64_t deadline_ns);

      private:
        Checkpointer &owner_;
        bool mine_ = false;
    };
    // A wait for a checkpoint, for the log.
    struct Waiting {
        uint64_t after = 0; // the step
        int64_t begun_ns = 0, looked_ns = INT64_MIN / 2, line_ns = 0;

        void begin(uint64_t step, int64_t now_ns);
        bool due(int64_t now_ns); // a line
    };
    void note(uint64_t step);
    // Sets the manifest except for the parts, which the servers may write after this.
    Status begin(std::span<ClientTable *const> tables, uint64_t step, Manifest &manifest);
    Status choose(std::span<ClientTable *const> tables, uint64_t step, Manifest &chosen);
    Status restore_all(std::span<ClientTable *const> tables, int64_t deadline_ns,
                       const Manifest &manifest);
    Status run(std::span<ClientTable *const> tables, RequestKind kind, const Manifest &manifest,
               int64_t timeout_ns);

    Node &node_;
    CheckpointFolder folder_;
    uint32_t keep_;
    std::mutex mutex_;
    std::condition_variable free_;
    bool busy_ = false; // a thread has the turn; guarded by mutex_
    std::mutex known_;  // guards the following members; never held for long
    Lineage lineage_;
    Waiting waiting_;
    bool any_ = false; // last_step_ and last_ns_ are set
    uint64_t last_step_ = 0;
    int64_t last_ns_ = 0;
};

} // namespace dtrain::ps
