// The state behind a Job: the driver under a lock, and the delivery of its reports to the observer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/join/driver.h"
#include "cluster/session/job.h"

#include <mutex>
#include <optional>
#include <sys/types.h>

namespace dtrain::cluster {

class Job::State {
  public:
    State(const JoinParams &params, Settings settings);

    Status open(const JoinParams &params); // returns when the job is complete
    void work();
    void leave();
    void give_up();
    Status post(wire::Message message);
    Status shrink(wire::ShrinkRequest request, ShrinkResult &result);
    uint64_t id() const;
    Status status() const;
    Status member_status(int32_t member) const;
    int64_t next_deadline() const;

    std::vector<Member> members;
    const int32_t self;
    int event_fd() const { return driver_.event_fd(); }

  private:
    // A thread in shrink().
    struct Waiter {
        uint64_t group;
        uint32_t attempt;
        Fd wake; // eventfd
        std::optional<wire::ShrinkReply> reply;
    };

    Status joining(std::vector<wire::Message> reports, bool &done);
    void warn_of_strangers();
    // Records what must be known before the observer is called.
    void note(const wire::Message &report);
    void tell(const wire::Message &report);
    void wait(int64_t until, int other_fd) const;
    Status outcome(const Waiter &waiter, ShrinkResult &result) const; // IN_PROGRESS: none yet

    Observer &observer_;
    Log *log_;
    mutable std::mutex mutex_; // guards everything below
    std::mutex delivery_;      // held while the observer is called; taken before mutex_
    Driver driver_;
    std::vector<wire::Message> early_; // reports that came together with the roster
    std::vector<Waiter *> waiters_;
    Status status_ = DTRAIN_OK; // of the job
    std::string text_;
    bool left_ = false;
    const pid_t process_; // a forked child must not speak for it
};

} // namespace dtrain::cluster
