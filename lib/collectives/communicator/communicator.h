// A communicator: an ordered group of ranks, and the calls made on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/session/session.h"
#include "collectives/call/call.h"
#include "collectives/call/message.h"
#include "collectives/call/prepared.h"
#include "collectives/call/topology.h"
#include "collectives/communicator/call_order.h"
#include "collectives/communicator/call_times.h"
#include "collectives/communicator/faults.h"
#include "collectives/communicator/membership.h"
#include "collectives/communicator/shared_memory.h"
#include "collectives/communicator/ways.h"
#include "collectives/window/window_operation.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dtrain::collectives {

struct Setup;

// The factors by which a reduction's input and result are multiplied.
struct Scaling {
    double before = 1, after = 1;
};

// How to run a call.
struct CallOptions {
    engine::Request *request = nullptr;           // completed by the operation
    int64_t timeout_ns = 0;                       // 0: option op.timeout; < 0: none
    const std::atomic<int64_t> *due_ns = nullptr; // as engine::Operation::due_ns
    bool blocking = false;                // the caller waits for the request, which is on its stack
    bool awaited = false;                 // the caller will wait for it at once, but elsewhere
    int32_t priority = 0;                 // of the operation; higher goes first
    memory::Registry *registry = nullptr; // where to look up registered buffers
    const Scaling *scaling = nullptr;     // of a reduction, or nullptr; only read by post()
    bool inside = false;                  // the caller is an operation, under the agent's lock
};

class Communicator {
  public:
    static constexpr uint64_t world_uid = 1; // of the job's first communicator, of all workers
    // Collective, blocking. A communicator that cannot be made leaves nothing behind.
    static Status make_world(std::shared_ptr<cluster::Session> session, int64_t timeout_ns,
                             std::unique_ptr<Communicator> &out);
    // Each of these takes at most op.timeout, or until the deadline, for everything it waits for.
    Status split(int32_t color, int32_t key, std::unique_ptr<Communicator> &out);
    Status duplicate(std::unique_ptr<Communicator> &out);
    Status duplicate_until(int64_t deadline_ns, std::unique_ptr<Communicator> &out);
    // ranks: the members of the new communicator, in their new order, as ranks of this one; equal
    // on all ranks. The other ranks get no `out`.
    Status subset(std::span<const int32_t> ranks, std::unique_ptr<Communicator> &out);
    // By the remaining ranks.
    Status shrink(std::unique_ptr<Communicator> &out);
    // By these ranks, each of which gives the same list and tag; the others take no part.
    Status create_group(std::span<const int32_t> ranks, int32_t tag, int64_t timeout_ns,
                        std::unique_ptr<Communicator> &out);
    ~Communicator(); // pending operations end with CANCELED

    // Posts a call; any thread. On failure nothing was posted. A call without data, or on a single
    // rank, may already be complete on return.
    Status post(const Call &call, const CallOptions &options);
    // The same in two steps. `out` keeps copies of the call's arrays and may be posted again and
    // again, but not while it is running.
    Status prepare_persistent(const Call &call, Prepared &out);
    Status post(Prepared &prepared, const CallOptions &options);
    // Both for a request whose landing is undecided: a large call in shared memory may work on the
    // buffers themselves, every other call works on the copies.
    Status post_undecided(const Call &call, const CallOptions &options);
    Status post_undecided(Prepared &prepared, const CallOptions &options);
    Status post_send(const void *buffer, uint64_t bytes, int32_t peer, uint32_t tag,
                     const CallOptions &options);
    Status post_recv(void *buffer, uint64_t bytes, int32_t peer, uint32_t tag,
                     const CallOptions &options);
    // Posts an operation of another kind that reports to this communicator; waits if blocking.
    void hand_over(engine::Operation *operation, const CallOptions &options);
    // On the agent's clock; 0: option op.timeout; < 0: INT64_MAX.
    int64_t deadline(int64_t timeout_ns) const;
    // The timeout for an operation that must end by the deadline.
    int64_t timeout_until(int64_t deadline_ns) const;
    // Runs a blocking collective for the library's own use.
    Status run(const Call &call, int64_t timeout_ns = 0,
               const std::atomic<int64_t> *due_ns = nullptr);
    // The same for one of several calls that share a deadline.
    Status run_until(const Call &call, int64_t deadline_ns);

    bool has_window() const { return memory_.is_used(); }
    const Limits &limits() const { return ways_.limits(); }
    // Called by all ranks at the same point in the order of calls.
    void set_limits(const Limits &limits);
    void set_choice(const NetworkModel &model, std::optional<Algorithm> forced);
    // Collective and blocking: measures the machine; rank 0 writes the result to the file
    // (tuning.h).
    Status tune(const char *path);

    Status abort(const char *reason) { return faults_.abort(reason); }
    // OK, or an error with the reason why it is or will be broken
    Status status() { return faults_.status(); }
    bool is_broken() const { return faults_.is_broken(); }
    std::vector<int32_t> failed_ranks() { return faults_.failed_ranks(); }
    Faults &faults() { return faults_; } // the listener of operations that are handed over
    int32_t rank() const { return int32_t(ranks_.rank); }
    int32_t size() const { return ranks_.size(); }
    bool is_world() const { return is_world_; }
    cluster::Session &session() { return *session_; }
    std::shared_ptr<cluster::Session> shared_session() const { return session_; }
    const Membership &ranks() const { return ranks_; }
    uint32_t member(uint32_t rank) const { return ranks_.members[rank]; }
    uint64_t uid() const { return ranks_.uid; }
    uint32_t tag_id() const { return ranks_.tag_id; }
    // Numbers the graphs made on this communicator, equally on all ranks.
    int32_t next_graph() { return ++graphs_; }
    // Records a collective call of another kind (table_create), so that mismatched calls are found;
    // the caller sends the call's own messages.
    Status note_call(cluster::CallRecord record);

  private:
    using Way = Prepared::Way;
    using Turn = CallOrder::Turn;
    using Ticket = CallOrder::Ticket;

    Communicator(std::shared_ptr<cluster::Session> session, Membership &&ranks);
    // The caller has taken tag_id; it is freed if no communicator is made. breaks_before: as for
    // Session::add_group(). parent: a communicator all of whose ranks make new ones in one call.
    static Status make(std::shared_ptr<cluster::Session> session, std::vector<uint32_t> members,
                       uint64_t uid, uint32_t tag_id, uint64_t breaks_before, int64_t deadline_ns,
                       std::unique_ptr<Communicator> &out, const Faults *parent = nullptr);
    Status split_until(int32_t color, int32_t key, int64_t deadline_ns,
                       std::unique_ptr<Communicator> &out);
    Status form(const cluster::GroupWish &wish, int64_t deadline_ns,
                std::unique_ptr<Communicator> &out);
    Topology find_topology() const;
    Status take_common_tag(bool joins, int64_t deadline_ns, uint32_t &tag);
    Status enter_generation(int64_t deadline_ns);
    Status set_up(int64_t deadline_ns);
    Status set_up_failed(Status status) const; // with this thread's error text
    Status open_window(const Setup &setup, int64_t deadline_ns);

    Status pass_gate(const CallOptions &options) const;
    Status ticket(const Turn &turn, const cluster::CallRecord &record, Ticket &out);
    Status post_prepared(Prepared &prepared, const CallOptions &options, Turn &turn);
    Status post_undecided(Prepared &prepared, const CallOptions &options, Turn &turn);
    Status post_window(const Prepared &prepared, const CallOptions &options, const Ticket &ticket,
                       Turn &turn);
    Status post_schedule(Prepared &prepared, const CallOptions &options, const Ticket &ticket,
                         Turn &turn);
    template <class Operation, class... Args>
    Status run_window(const WindowCall &w, const CallOptions &options, const Ticket &ticket,
                      Args &...args);
    template <class Bulk>
    Status run_bulk(const WindowCall &w, const CallOptions &options, const Ticket &ticket);
    Status post_ticketed(Prepared &prepared, const CallOptions &options, Turn &turn);
    bool agrees_first(const Prepared &prepared);
    Status adapt(Prepared &prepared, int64_t deadline_ns, Turn &turn);
    bool run_inline(WindowOperation &operation);
    void note_end(const WindowOperation &operation);
    // The current time if somebody measures how long calls take, else 0.
    int64_t begun() const {
        return agent_.timeline().on() || times_.wanted() ? agent_.clock().now_ns() : 0;
    }
    Status post_message(MessageOperation::Params &&params, const CallOptions &options);
    std::vector<uint32_t> other_transports() const;

    std::shared_ptr<cluster::Session> session_;
    engine::Agent &agent_;
    const Membership ranks_;
    bool is_world_ = false;
    const Topology topology_;
    std::atomic<int32_t> graphs_{0};

    CallOrder order_;
    CallTimes times_;
    Faults faults_;
    SharedMemory memory_;
    Ways ways_;
    const uint64_t compared_; // each call of this number has its results compared; 0: none
    bool agreeing_ = false;   // the current call is the adaptation's own; guarded by order_
};

} // namespace dtrain::collectives
