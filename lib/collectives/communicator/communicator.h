// A communicator: an ordered group of ranks, and the calls made on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/session/session.h"
#include "collectives/call/call.h"
#include "collectives/call/message.h"
#include "collectives/call/prepared.h"
#include "collectives/call/topology.h"
#include "collectives/communicator/adapt.h"
#include "collectives/communicator/explain.h"
#include "collectives/cost/choose.h"
#include "collectives/window/peer_memory.h"
#include "collectives/window/window_operation.h"
#include "engine/executor.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace dtrain::collectives {

class PlanCache;
class Measurement;
struct Machine;
struct Tuning;

// The factors by which a reduction's input and result are multiplied.
struct Scaling {
    double before = 1, after = 1;
};

// How to run a call.
struct CallOptions {
    engine::Request *request = nullptr;   // completed by the operation
    int64_t timeout_ns = 0;               // 0: option op.timeout; < 0: none
    bool blocking = false;                // the caller waits for the request, which is on its stack
    bool awaited = false;                 // the caller will wait for it at once, but elsewhere
    int32_t priority = 0;                 // of the operation; higher goes first
    memory::Registry *registry = nullptr; // where to look up registered buffers
    const Scaling *scaling = nullptr;     // of a reduction, or nullptr; only read by post()
    bool inside = false;                  // the caller is an operation, under the agent's lock
};

class Communicator final : public cluster::Group, public engine::OperationListener {
  public:
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
    Status shrink(std::unique_ptr<Communicator> &out);
    ~Communicator() override; // pending operations end with CANCELED

    // Posts a call; any thread. On failure nothing was posted. A call without data, or on a single
    // rank, may already be complete on return.
    Status post(const Call &call, const CallOptions &options);
    // The same in two steps. `out` keeps copies of the call's arrays and may be posted again and
    // again, but not while it is running.
    Status prepare_persistent(const Call &call, Prepared &out);
    Status post(Prepared &prepared, const CallOptions &options);
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
    Status run(const Call &call, int64_t timeout_ns = 0);
    // The same for one of several calls that share a deadline.
    Status run_until(const Call &call, int64_t deadline_ns);

    // Collective and blocking: measures the machine; rank 0 writes the result to the file
    // (tuning.h).
    Status tune(const char *path);

    Status abort(const char *reason);
    Status status(); // OK, or an error with the reason why it is or will be broken
    bool is_broken() const { return broken_from_.load(std::memory_order_acquire) != whole; }
    std::vector<int32_t> failed_ranks();
    int32_t rank() const { return int32_t(rank_); }
    int32_t size() const { return int32_t(members_.size()); }
    bool is_world() const { return is_world_; }
    cluster::Session &session() { return *session_; }
    std::shared_ptr<cluster::Session> shared_session() const { return session_; }
    uint32_t member(uint32_t rank) const { return members_[rank]; }
    uint64_t uid() const { return uid_; }
    uint32_t tag_id() const { return tag_id_; }
    // Numbers the graphs made on this communicator, equally on all ranks.
    int32_t next_graph() { return ++graphs_; }
    // Records a collective call of another kind (table_create), so that mismatched calls are found;
    // the caller sends the call's own messages.
    Status note_call(cluster::CallRecord record);

    // cluster::Group and engine::OperationListener, under the agent's lock
    bool contains(uint32_t member) const override;
    void member_lost(uint32_t member, const char *text, bool silent) override;
    void member_left(uint32_t member) override;
    void peer_broken(uint32_t member, const char *text, bool over) override;
    void failed(Status status, const char *text, int32_t guilty_member, uint64_t from) override;
    void calls_wanted() override;
    void rank_behind(int32_t rank, uint64_t seq) override;
    bool operation_started(engine::Operation &operation) override;
    void operation_failed(engine::Operation &operation, const engine::Outcome &outcome,
                          const char *text) override;
    void operation_stalled(engine::Operation &operation) override;
    void operation_ended(engine::Operation &operation) override;

  private:
    struct Setup {             // rank 0's decisions for all ranks
        uint64_t window_bytes; // per rank; 0: no window
        uint64_t chunk_bytes, exchange_bytes;
        uint64_t eager_bytes; // 0: the transports' defaults
        NetworkModel model;
        int32_t algorithm; // forced for all-reduce over messages; -1: none
        int32_t adapts;    // 1: option tuning.adapt
        uint8_t handle[transport::Device::max_blob];
    };
    // A call's place in the order of calls.
    struct Ticket {
        uint64_t seq = 0, fingerprint = 0;
    };
    using Way = Prepared::Way;
    struct Fault {
        Status status = DTRAIN_OK;
        int32_t rank = -1; // the rank at fault
        char text[error_text_size] = {};
    };
    // State of a rank that may send nothing more.
    struct Gone {
        std::string why;    // "": the rank is still there
        bool known = false; // the control plane says that it is lost or has left
        bool lost = false;
        bool over = false; // no message from it is in transit
    };
    static constexpr uint64_t whole = UINT64_MAX;

    Communicator(std::shared_ptr<cluster::Session> session, std::vector<uint32_t> members,
                 uint64_t uid, uint32_t tag_id);
    // The caller has taken tag_id; it is freed if no communicator is made.
    static Status make(std::shared_ptr<cluster::Session> session, std::vector<uint32_t> members,
                       uint64_t uid, uint32_t tag_id, int64_t deadline_ns,
                       std::unique_ptr<Communicator> &out);
    Status split_until(int32_t color, int32_t key, int64_t deadline_ns,
                       std::unique_ptr<Communicator> &out);
    Topology find_topology() const;
    Status take_common_tag(bool joins, int64_t deadline_ns, uint32_t &tag);
    Status set_up(int64_t deadline_ns);
    Status open_window(const Setup &setup, int64_t deadline_ns);
    void offer(Setup &setup);
    Status attach_window(const Setup &setup, int64_t deadline_ns);
    Status check_rails(int64_t deadline_ns);
    void try_rails(std::span<uint8_t> works, int64_t deadline_ns);
    uint32_t far_neighbor() const;

    Machine machine() const;
    void apply_tuning(Setup &setup) const;
    void set_limits(uint64_t exchange_bytes, uint64_t chunk_bytes, bool by_messages);
    uint64_t limit_eager(uint64_t bytes);
    Status find_eager_limit(Measurement &measurement, uint64_t &best);
    Status find_exchange_limit(Measurement &measurement, uint64_t &best);
    Status find_chunk(Measurement &measurement, uint64_t &best);
    Status measure(Tuning &out);

    Status ticket(cluster::CallRecord record, Ticket &out); // order_ must be held
    Status prepare(const Call &call, Prepared &out);        // order_ must be held
    Status post_prepared(Prepared &prepared, const CallOptions &options,
                         std::unique_lock<std::mutex> &order);
    Status post_window(const Prepared &prepared, const CallOptions &options, const Ticket &ticket,
                       std::unique_lock<std::mutex> &order);
    Status post_schedule(Prepared &prepared, const CallOptions &options, const Ticket &ticket,
                         std::unique_lock<std::mutex> &order);
    template <class Operation, class... Args>
    Status run_window(const WindowCall &w, const CallOptions &options, const Ticket &ticket,
                      Args &...args);
    template <class Bulk>
    Status run_bulk(const WindowCall &w, const CallOptions &options, const Ticket &ticket);
    Status post_ticketed(Prepared &prepared, const CallOptions &options,
                         std::unique_lock<std::mutex> &order);
    CollectiveSpec chunked_spec(const Prepared &prepared) const;
    bool agrees_first(const Prepared &prepared);
    Status adapt(Prepared &prepared, int64_t deadline_ns, std::unique_lock<std::mutex> &order);
    bool run_inline(WindowOperation &operation);
    void note_end(const WindowOperation &operation);
    // The current time if somebody measures how long calls take, else 0.
    int64_t begun() const {
        bool wanted = agent_.timeline().on() || explainer_ != nullptr || adaptation_ != nullptr;
        return wanted ? agent_.clock().now_ns() : 0;
    }
    Status post_message(MessageOperation::Params &&params, const CallOptions &options);
    std::vector<uint32_t> other_transports() const;

    bool break_with(Status status, int32_t guilty_rank, const char *text, uint64_t from);
    void tell_others(uint64_t from);
    Gone *gone(uint32_t member);
    void look_again(const Gone *news); // about this rank; nullptr: about the communicator
    const Gone *awaited_in_vain(const engine::Operation &operation) const;
    uint64_t first_open();
    uint64_t next_call();
    void fail_operation(engine::Operation &operation);
    std::string describe_operation(const engine::Operation &operation) const;
    void report(bool stalled, bool stuck, uint64_t up_to);
    Status faulty();

    std::shared_ptr<cluster::Session> session_;
    engine::Agent &agent_;
    std::vector<uint32_t> members_;   // rank -> member
    std::vector<int32_t> member_ids_; // the same as the job's identifiers
    uint32_t rank_ = 0;
    const uint64_t uid_;
    const uint32_t tag_id_;
    bool is_world_ = false;
    const Topology topology_;

    // Guarded by order_, the order of calls.
    std::mutex order_;
    uint64_t seq_ = 0, fingerprint_ = 0;
    std::atomic<int32_t> graphs_{0};
    static constexpr size_t kept_records = 64;
    // By seq; guarded by order_ or the agent's lock.
    std::array<cluster::CallRecord, kept_records> records_{};
    uint64_t window_calls_ = 0;
    Prepared prepared_; // the last call
    std::unique_ptr<PlanCache> plans_;
    std::unique_ptr<Explainer> explainer_;   // on rank 0, if option explain is set
    std::unique_ptr<Adaptation> adaptation_; // on all ranks or none
    bool agreeing_ = false;                  // the current call is the adaptation's own

    std::unique_ptr<Window> window_, opening_; // opening_: until all ranks have it
    std::unique_ptr<PeerMemory> peer_memory_;  // set together with window_
    uint64_t chunk_bytes_ = usual_chunk, exchange_bytes_ = 0;
    bool allreduce_by_messages_ = false; // even if there is a window

    // Guarded by the agent's lock.
    std::vector<engine::Operation *> in_flight_;
    std::vector<Gone> gone_; // by rank
    bool any_gone_ = false;
    std::vector<bool> failed_; // by rank
    int64_t reported_ns_ = 0, logged_ns_ = 0;
    Fault fault_;
    // Calls from this number on fail. Once it is not `whole`, fault_ is set and constant.
    std::atomic<uint64_t> broken_from_{whole};
};

} // namespace dtrain::collectives
