// A communicator and its gradient queue while this rank is in join(): it contributes zeros to the
// others' named all-reduces, and answers their other ops, which fail at once instead of waiting.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorflow/agreement.h"
#include "tensorflow/registry.h"
#include <optional>

namespace dtrain::tensorflow {

class Joined {
  public:
    Joined(Entry &comm, Entry &queue) : comm_(comm), queue_(queue) {}
    ~Joined(); // waits for what is still on its way
    Joined(const Joined &) = delete;
    Joined &operator=(const Joined &) = delete;

    const Use &comm() const { return comm_; }
    const Use &queue() const { return queue_; }
    bool exists() const { // in this process
        return comm_->kind == Kind::communicator && queue_->kind == Kind::gradients;
    }

    dtrain_status_t start();
    // Looks after what has come, and waits for it for at most so long.
    void step(int64_t wait_ns);
    // All ranks are in join(), or the communicator is broken.
    bool ended() const { return answer_ == nullptr && status() != DTRAIN_IN_PROGRESS; }
    // Of the queue's join.
    dtrain_status_t status() const;
    dtrain_request_t *request() const { return request_; }
    void abort();

  private:
    void agree();
    dtrain_comm_t *handle() const { return static_cast<dtrain_comm_t *>(comm_->handle); }
    const Use comm_, queue_;
    dtrain_request_t *request_ = nullptr; // of the queue's join
    // What this rank says to the others' next op, and the request for it; null once this has ended.
    std::optional<Agreement> agreement_;
    dtrain_request_t *answer_ = nullptr;
    bool comparing_ = false, aborted_ = false;
};

} // namespace dtrain::tensorflow
