// A joined job: its members, their health, and what they tell each other about groups.
// SPDX-License-Identifier: Apache-2.0
//
// Worker 0's process holds the coordinator; every member keeps one authenticated control connection
// to it. When the coordinator is lost or leaves, the lowest member alive takes over. Members are
// numbered workers first, then servers. A group (communicator) is a 64-bit uid and an ordered list
// of members; the job keeps no list of groups, so each message about a group names its members.
//
// THREADS: all functions may be called from any thread. The observer is called only from work() and
// form_group(), one call at a time, never before join() has returned. It may call everything except
// work(), form_group() and leave(), and these must not be called with a lock held that the observer
// takes.
#pragma once
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/secret.h"
#include "base/sleep.h"
#include "base/status.h"
#include "cluster/control/calls.h"
#include "cluster/control/next_job.h"
#include "cluster/control/tag_ids.h"
#include "cluster/host/identity.h"
#include "protection/demand.h"
#include "wire/control.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dtrain::cluster {

// Its name is, for example, "tcp"; its bytes are at most wire::max_transport_address.
using TransportAddress = wire::Transport;

struct Member {
    Role role = Role::worker;
    int32_t index = 0; // rank, or number of the server
    std::string label; // "10.0.0.4:7001 pid 991", for texts
    std::string host;  // equal for members on the same running machine; opaque
    std::vector<TransportAddress> transports;
    uint64_t cpus = 0;    // equal for members of a host that may use the same CPUs
    std::string location; // of the host, outermost level first: "zone/rack"; "": unknown
    bool serves = false;  // a worker that serves tables beside the dedicated servers
    uint32_t slot = 0;    // of this job in the tags of messages to the member
};

class Observer {
  public:
    virtual ~Observer() = default;
    // DTRAIN_ERR_PEER; text: "rank 3 (10.0.0.4:7001 pid 991) lost: connection closed". Called once
    // per member. silent: its process may still exist; otherwise messages that it sent may still
    // arrive.
    virtual void member_lost(int32_t member, Status status, const std::string &text,
                             bool silent) = 0;
    virtual void member_left(int32_t member) = 0; // it called leave()
    // Another member called abort() or fail_group(), or the coordinator found a mismatch. guilty: a
    // member, or -1. from: see fail_group(). May be called more than once, and for a group that is
    // not (or no longer) known here.
    virtual void group_failed(uint64_t group, Status status, const std::string &text,
                              int32_t guilty, uint64_t from) = 0;
    // Another rank of the group stalls: answer with report_calls(), stalled = false.
    virtual void calls_wanted(uint64_t group) = 0;
    // In answer to a report with stalled = true: that rank's last call is number `seq` (0: none
    // yet), which is before the call that stalls here.
    virtual void rank_behind(uint64_t group, int32_t rank, uint64_t seq) = 0;
    virtual void message(int32_t from, uint32_t channel, std::span<const uint8_t> bytes) = 0;
    // DTRAIN_ERR_FENCED (the job went on without this member) or another error. The job is over
    // here, and every group fails with this error. Called once.
    virtual void job_failed(Status status, const std::string &text) = 0;
    // The workers have formed the next generation of the job. Servers are told by this alone.
    virtual void job_moved(const NextJob & /*next*/) {}
    // A thread waits in a call for the control plane. It sleeps until one of the descriptors is
    // readable, for timeout_ns at most; it may do something else first, and return early.
    virtual void sleep(std::span<pollfd> fds, int64_t timeout_ns) { sleep_on(fds, timeout_ns); }
};

struct JoinParams {
    Identity identity;
    dtrain_oob_allgather_fn oob = nullptr; // rendezvous "oob"
    void *oob_arg = nullptr;
    int64_t timeout_ns = -1; // < 0: none
    int64_t heartbeat_interval_ns = 0, heartbeat_timeout_ns = 0;
    std::string listen_address; // "": chosen by the route to the rendezvous
    Secret secret;              // none: no authentication
    protection::Demand protection;
    std::string location; // of this host: option "topology"
    bool serves = false;  // option "ps.serve"
    uint32_t verify = 0;  // options "verify" and "verify.results", as wire::Peer has them
    uint32_t slot = 0;    // of the job in the tags of messages to this member
    std::vector<TransportAddress> transports;
    std::shared_ptr<Fd> listener; // of worker 0 that listens already, or nullptr
    Observer *observer = nullptr; // outlives the job
    Log *log = nullptr;           // outlives the job
};
// Fills timeout, heartbeat, listen_address, location, verify, secret (from option secret or
// secret.file) and protection.
Status read_join_options(const Options &options, JoinParams &params);
// The monotonic deadline of a join that begins now; INT64_MAX: none. timeout_ns 0: option
// join.timeout.
int64_t join_deadline(const Options &options, int64_t timeout_ns);

using wire::GroupKind;

struct GroupWish {
    GroupKind kind;
    uint64_t group; // of which the new one is made
    std::span<const int32_t> members;
    int32_t user_tag = 0; // the same on all members; tells wishes with equal lists apart
};
struct NewGroup {
    std::vector<int32_t> members; // in the order of the list
    uint64_t uid = 0;             // never used before
    uint32_t tag_id = 0;          // taken on all members
};

// What a worker asks of a reform.
struct ReformWish {
    int32_t smallest = 1, largest = 0; // number of workers; 0: no limit
    bool leaves = false;               // this worker is not in the next generation
    int64_t timeout_ns = 0;            // < 0: none
};

class Job {
  public:
    // Blocking, bounded by the timeout; meanwhile logs which members are missing. On failure
    // nothing remains. A newcomer gets `next` when it is taken in, and no job.
    static Status join(const JoinParams &params, std::unique_ptr<Job> &job_p,
                       NextJob *next = nullptr);
    ~Job(); // calls leave() if it was not called

    uint64_t id() const;                        // random, the same on all members
    int32_t self() const;                       // own member number
    const std::vector<Member> &members() const; // fixed from join() on
    // DTRAIN_OK, or why this member cannot be reached any more (DTRAIN_ERR_PEER, with text). Call
    // it after creating a group: a member may have been lost before the group was known here.
    Status member_status(int32_t member) const;
    Status status() const; // DTRAIN_OK, or the error passed to job_failed(), with text

    // To the farthest of the members to which this one has had a control connection: worker 0 to
    // all, others to worker 0. 0: unknown.
    int64_t round_trip_ns() const;

    // To be called when event_fd() is readable (epoll, poll), or CLOCK_MONOTONIC has reached
    // next_deadline_ns() (INT64_MAX: never; it may become earlier only while event_fd() is
    // readable, too). Without these calls this member counts as silent. Does not block.
    int event_fd() const;
    int64_t next_deadline_ns() const;
    void work();

    // Memory was lacking for work(): the job is over here, and the others see this member as lost.
    void give_up();

    // The following functions never wait, except form_group() and reform().
    // DTRAIN_ERR_STATE once the job is over.

    // Sends at most wire::max_relay bytes to any member (also this one), through the coordinator,
    // in order; they may be lost when a coordinator is. DTRAIN_ERR_BUSY: too much is queued.
    Status send(int32_t member, uint32_t channel, std::span<const uint8_t> bytes);
    // The other members of the group get group_failed(DTRAIN_ERR_ABORTED, reason).
    Status abort(uint64_t group, std::span<const int32_t> members, const std::string &reason,
                 uint64_t from = 0);
    // As abort(), with any status: this rank found the group broken. from: the group's calls before
    // this number have ended here, so they may still succeed elsewhere.
    Status fail_group(uint64_t group, std::span<const int32_t> members, Status status,
                      const std::string &text, int32_t guilty, uint64_t from = 0);
    // Reports this rank's last calls in the group (oldest first, at most wire::max_calls). stalled:
    // the last of them makes no progress; the coordinator then asks the other ranks for their
    // calls. A difference fails the group on all members with DTRAIN_ERR_MISMATCH, naming both
    // sides. stuck: it has made no progress for too long; when all members report this, the group
    // fails with DTRAIN_ERR_TIMEOUT.
    Status report_calls(uint64_t group, std::span<const int32_t> members, bool stalled,
                        std::span<const CallRecord> calls, bool stuck = false);
    // Makes a new group together with the other members that the kind needs, without any other.
    // Blocking; calls work() itself. DTRAIN_ERR_TIMEOUT names the members that did not call it,
    // DTRAIN_ERR_PEER one that is needed and gone, DTRAIN_ERR_MISMATCH two lists that differ.
    // DTRAIN_ERR_LIMIT: no tag is free; _BUSY: another thread has the same wish.
    Status form_group(const GroupWish &wish, TagIds &tags, int64_t timeout_ns, NewGroup &result);
    // Agrees with the other living workers on the next generation of an elastic job, in which
    // newcomers may be. This job goes on until it is left. Blocking; calls work() itself.
    Status reform(uint64_t group, std::span<const int32_t> members, const ReformWish &wish,
                  NextJob &next);
    uint32_t newcomers() const; // how many wait to be taken in
    // Elastic jobs: the socket at which newcomers find the coordinator, for the next generation;
    // and the other way round. Without one it is opened.
    Fd release_door();
    void open_door(Fd taken);
    // This process is in the next generation, as the others are told when it leaves: there is no
    // way back. Returns the socket at which members look for it, to be kept open in the next
    // generation: one that wakes up late, and finds nobody in this one, must not think that all
    // have ended, and go on alone.
    Fd move_on();
    // Tells the others; the observer is not called afterwards. Bounded in time; does not wait for
    // other members.
    void leave();

    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;

  private:
    class State;
    explicit Job(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace dtrain::cluster
