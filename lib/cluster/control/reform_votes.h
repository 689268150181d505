// The coordinator's part of a reform: one decision about the next generation of the job.
// SPDX-License-Identifier: Apache-2.0
//
// A reform is identified by (group, attempt); every member counts its attempts. It is decided when
// all living members of the group have asked, and there are enough newcomers for the smallest size
// that any of them wants. Answers are kept, and members that have received one pass it to a new
// coordinator, so that all members get the same.
//
// If the next generation does not form, its members ask again. But some of them may have formed it,
// and the others not have heard of that: these are shut out, since otherwise there would be two
// next generations. Members that have formed one say so when they leave.
#pragma once
#include "cluster/control/membership.h"
#include "cluster/control/newcomers.h"

#include <functional>
#include <map>
#include <vector>

namespace dtrain::cluster {

class ReformVotes {
  public:
    struct Answer {
        std::vector<int32_t> members; // who asked
        std::vector<Newcomer> taken;  // in the order of their numbers
        wire::Moved moved;
    };
    using Answers = std::vector<Answer>;

    // All must outlive it. own: of the job that is formed anew.
    ReformVotes(const Membership &state, const Newcomers &newcomers, const Identity &own)
        : state_(state), newcomers_(newcomers), own_(own) {}

    // `member` must be alive and in request.members.
    Answers request(int32_t member, const wire::ReformRequest &request, int64_t now);
    Answers look_again(); // a member is gone, or a newcomer has come
    Answers tick(int64_t now);
    int64_t next_deadline() const;
    void remember(const wire::Moved &moved); // an answer of an earlier coordinator
    bool decided() const;                    // there may be a next generation
    bool is_answered(const wire::ReformRequest &request) const {
        return answer_to(request) != nullptr;
    }
    // Whether another member asks for the same now.
    bool is_asked(const wire::ReformRequest &request) const {
        return pending_.contains({request.group, request.attempt});
    }

  private:
    using Key = std::pair<uint64_t, uint32_t>; // group, attempt
    struct Vote {
        std::string place;
        bool leaves = false;
    };
    struct Pending {
        std::vector<int32_t> members;
        std::map<int32_t, Vote> asked;
        int32_t smallest = 1, largest = 0; // 0: no limit
        int64_t deadline = INT64_MAX;
    };
    static constexpr size_t max_finished = 64;

    const wire::Moved *answer_to(const wire::ReformRequest &request) const;
    Status check(int32_t member, const Pending &pending, const wire::ReformRequest &request) const;
    bool complete(const Pending &pending) const; // all have asked
    int32_t staying(const Pending &pending) const;
    int32_t room(const Pending &pending) const; // for newcomers that are workers
    bool large_enough(const Pending &pending) const;
    Answer decide(const Pending &pending) const;
    wire::Moved give_up(const Pending &pending) const;
    const wire::Gone *first_moved() const;   // a worker that is in the next generation, or nullptr
    Status too_late() const;                 // since there is one
    wire::Moved refuse(Status status) const; // with this thread's error text
    void finish(Key key, Answer answer, Answers &answers); // erases pending_[key]

    const Membership &state_;
    const Newcomers &newcomers_;
    const Identity &own_;
    std::map<Key, Pending> pending_;
    std::vector<wire::Moved> finished_; // oldest first
};

} // namespace dtrain::cluster
