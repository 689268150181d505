// A context's membership in one job: connects the job's control plane with the data plane.
// SPDX-License-Identifier: Apache-2.0
//
// Turns events of the control plane (a member died, a group failed) into failures of the groups
// concerned, and events of the data plane (a broken connection, a stall) into reports. The thread
// that answers heartbeats hands events in: it never waits for one that moves data.
#pragma once
#include "cluster/session/job.h"
#include "engine/agent.h"
#include "engine/backgrounds.h"
#include "engine/mesh.h"
#include "engine/staging.h"
#include "engine/tag.h"

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace dtrain::cluster {

// A communicator, or any other object that depends on members. Its functions are called under the
// agent's lock.
class Group {
  public:
    virtual ~Group() = default;
    virtual bool contains(uint32_t member) const = 0;
    // silent: nothing more comes from the member; otherwise messages that it sent may still arrive.
    // status: DTRAIN_ERR_PEER, or DTRAIN_ERR_CORRUPT if its connection carried what it did not
    // send.
    virtual void member_lost(uint32_t member, Status status, const char *text, bool silent) = 0;
    virtual void member_left(uint32_t member) = 0;
    // A connection to the member broke; over: it was the last one. If the member died, or left
    // after sending what is still needed, the control plane will say so. status: as above.
    virtual void peer_broken(uint32_t member, Status status, const char *text, bool over) = 0;
    // from: calls before this number may still succeed; 0: no call can.
    virtual void failed(Status status, const char *text, int32_t guilty_member, uint64_t from) = 0;
    virtual void calls_wanted() = 0;
    virtual void rank_behind(int32_t rank, uint64_t seq) = 0;
    // This process waits in a reform because of a member that is gone, which need not be one of the
    // group: it makes no more calls of the group, for which others may wait.
    virtual void abandoned(uint32_t /*member*/, const char * /*text*/) {}
    // The workers have formed the next generation of the job (Observer::job_moved()).
    virtual void moved(const NextJob & /*next*/) {}
};

// The addresses of the agent's devices, which members tell each other.
std::vector<TransportAddress> transport_addresses(engine::Agent &agent);

struct SessionParams {
    Identity identity;
    dtrain_oob_allgather_fn oob = nullptr;
    void *oob_arg = nullptr;
    int64_t deadline_ns = INT64_MAX;          // monotonic; for all of joining
    std::vector<TransportAddress> transports; // of the agent's devices
    std::shared_ptr<Fd> listener;             // of worker 0 that listens already, or nullptr
};

class Session final : public Observer, public engine::Background, public engine::Mesh::Listener {
  public:
    // Blocking. All references must outlive the session. DTRAIN_ERR_LIMIT: the agent has
    // engine::max_jobs sessions already. A newcomer waits until a running job takes it in.
    static Status join(engine::Agent &agent, engine::Backgrounds &backgrounds,
                       const Options &options, const SessionParams &params,
                       std::shared_ptr<Session> &out);
    ~Session() override; // leaves the job

    Job &job() { return *job_; }
    engine::Mesh &mesh() { return mesh_; }
    engine::Agent &agent() { return agent_; }
    engine::Staging &staging() { return *staging_; } // under the agent's lock
    const Options &options() const { return options_; }
    // Option op.timeout, kept here since looking it up takes longer than a small operation.
    int64_t op_timeout_ns() const { return op_timeout_ns_; }
    // The time limit of a call with this timeout parameter; 0: the option's value. < 0: none.
    int64_t time_limit(int64_t timeout_ns) const {
        return timeout_ns != 0 ? timeout_ns : op_timeout_ns_;
    }
    // The same as a deadline on the agent's clock; INT64_MAX: none.
    int64_t deadline(int64_t timeout_ns) const;
    // The timeout for an operation that must end by this deadline.
    int64_t timeout_until(int64_t deadline_ns) const;
    // When a call's time is over, it has this much more time to tell others of its failure.
    static constexpr int64_t goodbye_ns = 200 * ms;
    int64_t stall_limit_ns() const { return stall_limit_ns_; }
    uint32_t self() const { return uint32_t(job_->self()); }
    const std::vector<Member> &members() const { return job_->members(); }
    uint32_t workers() const { return workers_; }
    // Whether any two members may have several rails between them.
    bool has_rails() const;
    uint32_t servers() const { return uint32_t(job_->members().size()) - workers_; }
    const Identity &identity() const { return identity_; }
    // For a newcomer: how it came into the job; else nullptr.
    const NextJob *entry() const { return entry_.get(); }
    // For those who have agreed on the next generation to meet there; then they ask again. One that
    // does not come was lost after the agreement, as its silence tells.
    static int64_t forming_patience(const Options &options) {
        return std::max(1 * second, options.number("heartbeat.timeout"));
    }
    // This session's job is the next generation of last's (Job::move_on()).
    void succeed(Session &last);
    // How many ranks of this host share a core, at least 1.
    uint32_t ranks_per_core() const { return ranks_per_core_; }

    // A group is told of events that concern it from add_group() until remove_group() returns.
    // Adding a group with a member that is already lost fails the group at once; so does adding one
    // that another member has failed before. breaks_before: what breaks() was before any member can
    // have sent something for the group; it is told of connections that have broken since then, as
    // that may be lost.
    void add_group(uint64_t uid, Group *group, uint64_t breaks_before);
    uint64_t breaks(); // how often a connection has broken
    void remove_group(uint64_t uid, Group *group);

    TagIds &tags() { return tags_; }  // of its groups
    void drop_messages(uint32_t tag); // that have come with this tag id
    // Whether other members wait for this one to shrink a group, or to reform the job, under the
    // agent's lock.
    bool others_wait() const { return !awaiting_.empty(); }
    // While one lives, this process waits in a reform. Once a member is gone, it abandons all
    // groups (Group::abandoned()): those who wait for this process there are to reform as well.
    class Reforming {
      public:
        Reforming(Session &session, uint64_t uid);
        ~Reforming();
        Reforming(const Reforming &) = delete;

      private:
        Session &session_;
        const uint64_t uid_;
    };
    // This process has shrunk the group, too.
    void has_come(uint64_t uid);
    // When this process was last told that others stall in calls of a group which it has not begun,
    // as it is about once a second, on the agent's clock; 0: never.
    int64_t awaited_at() const { return awaited_at_.load(std::memory_order_relaxed); }
    // Before a new group's first operation: what peers have said of their connections counts, since
    // nothing else tells of those that a peer has ended.
    void hear_of_ended_connections();

    void peer_broken(uint32_t member, Status status, const char *text) override;
    bool alive(uint32_t member) override;

    // Background
    int event_fd() override { return job_->event_fd(); }
    int64_t next_deadline_ns() override { return job_->next_deadline_ns(); }
    void work() override;
    void out_of_memory() override { job_->give_up(); }

    // Observer
    void member_lost(int32_t member, Status status, const std::string &text, bool silent) override;
    void member_left(int32_t member) override;
    void group_failed(uint64_t uid, Status status, const std::string &text, int32_t guilty,
                      uint64_t from) override;
    void calls_wanted(uint64_t uid) override;
    void rank_behind(uint64_t uid, int32_t rank, uint64_t seq) override;
    void message(int32_t from, uint32_t channel, std::span<const uint8_t> bytes) override;
    void job_failed(Status status, const std::string &text) override;
    void job_moved(const NextJob &next) override;
    void sleep(std::span<pollfd> fds, int64_t timeout_ns) override {
        agent_.stand_in(fds, timeout_ns);
    }

  private:
    Session(engine::Agent &agent, engine::Backgrounds &backgrounds, const Options &options);
    Status join_job(JoinParams &params, int64_t deadline_ns);
    Status connect_mesh();
    void set_wait_policy();
    // An event that the agent takes. The one of the job's end needs no memory.
    struct Event;
    struct End final : engine::Posted {
        explicit End(Session &owner) : session(owner) {}
        void take(engine::Agent &agent) override;
        Session &session;
        std::atomic<bool> is_handed_in{false};
    };
    void hand_in(std::function<void()> event);
    template <class F> void tell_group(uint64_t uid, F &&f);
    // Another member may fail a group before this one has made it.
    struct GroupFailure {
        uint64_t uid;
        Status status;
        std::string text;
        int32_t guilty;
        uint64_t from;
        void tell(Group &group) const { group.failed(status, text.c_str(), guilty, from); }
    };
    void group_failed(const GroupFailure &failure);
    void abandon_groups(uint32_t gone, const char *text);
    void take_what_has_come();

    engine::Agent &agent_;
    engine::Backgrounds &backgrounds_;
    const Options &options_;
    std::optional<uint32_t> slot_; // in the agent's JobSlots
    const int64_t op_timeout_ns_, stall_limit_ns_;
    Identity identity_;
    uint32_t workers_ = 0;
    uint32_t ranks_per_core_ = 1;
    std::unique_ptr<Job> job_;
    std::unique_ptr<NextJob> entry_;
    std::vector<Fd> former_; // the listeners of the last generations
    engine::Mesh mesh_;
    std::unique_ptr<engine::Staging> staging_;
    // Under the agent's lock.
    std::unordered_multimap<uint64_t, Group *> groups_;
    struct Break {
        uint64_t number = 0; // from 1; 0: there was none
        Status status = DTRAIN_OK;
        bool over = false;
        std::string text;
    };
    std::vector<Break> broken_; // of each member the last one
    uint64_t breaks_ = 0;
    std::deque<GroupFailure> early_; // of groups that are not there, the last ones
    std::set<uint64_t> awaiting_;    // groups in which others_wait()
    bool reforming_ = false;
    TagIds tags_{[this](uint32_t tag) { drop_messages(tag); }};
    End end_{*this};
    std::atomic<bool> lacks_memory_{false}; // for an event
    std::atomic<int64_t> awaited_at_{0};
};

} // namespace dtrain::cluster
