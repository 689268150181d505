// The state behind a Job: the driver under a lock, and the delivery of its reports to the observer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/control/group_attempt.h"
#include "cluster/join/driver.h"
#include "cluster/session/job.h"

#include <mutex>
#include <optional>
#include <sys/types.h>

namespace dtrain::cluster {

inline int64_t now_ns() { return monotonic_clock().now_ns(); }

class Job::State {
  public:
    State(const JoinParams &params, Settings settings);

    // Returns when the job is complete, or when a newcomer was taken in.
    Status open(const JoinParams &params, std::optional<wire::Moved> &moved);
    void work();
    void leave();
    void give_up();
    Status post(wire::Message message);
    Status form_group(GroupAttempt &attempt, int64_t timeout_ns, NewGroup &result);
    Status reform(wire::ReformRequest request, wire::Moved &moved);
    uint32_t newcomers() const;
    Status listen(Fd &out); // where other members can connect to this one
    Fd release_door();
    void open_door(Fd taken);
    Fd move_on();
    uint64_t id() const;
    Status status() const;
    Status member_status(int32_t member) const;
    int64_t next_deadline() const;
    int64_t round_trip_ns() const;

    std::vector<Member> members;
    const int32_t self;
    const Identity identity;
    int event_fd() const { return driver_.event_fd(); }

  private:
    // A thread in form_group().
    struct Waiter {
        const GroupAttempt &attempt;
        Fd wake;             // eventfd
        uint32_t serial = 0; // of its request
        std::optional<wire::GroupReply> reply;
    };

    Status joining(std::vector<wire::Message> reports, bool &done,
                   std::optional<wire::Moved> &moved);
    void warn_of_strangers();
    // Records what must be known before the observer is called.
    void note(const wire::Message &report);
    void tell(const wire::Message &report);
    void wait(int64_t until, int other_fd) const;
    // job_groups.cpp
    Status ask(Waiter &waiter, int64_t deadline);
    Status enlist(Waiter &waiter);
    void strike(Waiter &waiter);
    bool is_being_made(const wire::GroupRequest &request) const;
    Status outcome(const Waiter &waiter) const; // IN_PROGRESS: none yet

    // A thread in reform() (job_elastic.cpp).
    struct Mover {
        uint64_t group;
        uint32_t attempt = 0;
        Fd wake = {}; // eventfd
        std::optional<wire::Moved> moved = {};
    };
    void note_moved(const wire::Moved &moved);

    Observer &observer_;
    Log *log_;
    mutable std::mutex mutex_; // guards everything below
    std::mutex delivery_;      // held while the observer is called; taken before mutex_
    Driver driver_;
    std::vector<wire::Message> early_; // reports that came together with the roster
    std::vector<Waiter *> waiters_;
    std::vector<Mover *> movers_;
    Status status_ = DTRAIN_OK; // of the job
    std::string text_;
    bool left_ = false, moved_on_ = false;
    uint32_t newcomers_ = 0;
    const pid_t process_; // a forked child must not speak for it
};

} // namespace dtrain::cluster
