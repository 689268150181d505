// What a worker does for checkpoints: it names them, has all servers write their parts, and ends
// them.
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

// Thread-safe; one call at a time does its work, others wait for it.
class Checkpointer {
  public:
    explicit Checkpointer(Node &node);

    struct Interval {
        uint64_t steps = 0; // 0: not by steps
        int64_t ns = 0;     // 0: not by time
    };
    // Blocking. With an interval it does nothing until one has passed since the last checkpoint
    // that was saved or restored here, or since the first call.
    Status save(std::span<ClientTable *const> tables, uint64_t step, const Interval &interval,
                int64_t timeout_ns, bool &saved);
    // step: UINT64_MAX: the newest with these tables; becomes the one that was restored.
    Status restore(std::span<ClientTable *const> tables, int64_t deadline_ns, uint64_t &step,
                   Lineage::Point *point = nullptr);
    // What another worker of the job has restored, who tells the point, goes on here, too.
    void take(const Lineage::Point &point, const ClientTable &table);
    Status newest(ClientTable *table, uint64_t &step);

  private:
    Status check_folder() const;
    bool due(uint64_t step, const Interval &interval);
    // Whose turn it is to save or restore.
    class Turn {
      public:
        explicit Turn(Checkpointer &owner) : owner_(owner) {}
        ~Turn();
        Status take(int64_t deadline_ns);

      private:
        Checkpointer &owner_;
        bool mine_ = false;
    };
    void note(uint64_t step);
    // All but its parts, which the servers may write then.
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
    bool busy_ = false; // under mutex_; what is done is done in one thread's turn
    std::mutex known_;  // of what follows, never held for long
    Lineage lineage_;
    bool any_ = false; // the following are set
    uint64_t last_step_ = 0;
    int64_t last_ns_ = 0;
};

} // namespace dtrain::ps
