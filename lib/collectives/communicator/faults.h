// Failures of a communicator: which ranks are gone, which operations are in flight, and from which
// call on it is broken.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cluster/session/session.h"
#include "collectives/communicator/call_order.h"
#include "collectives/communicator/call_times.h"
#include "collectives/communicator/membership.h"
#include "engine/executor.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtrain::collectives {

class Faults final : public cluster::Group, public engine::OperationListener {
  public:
    // All must outlive it.
    Faults(cluster::Session &session, const Membership &ranks, CallOrder &order,
           const CallTimes &times);

    // Any thread.
    bool is_broken() const { return broken_from_.load(std::memory_order_acquire) != whole; }
    // Whether this call fails. A caller that then reads error() needs `acquire`.
    bool fails(uint64_t seq, std::memory_order order = std::memory_order_acquire) const {
        return seq >= broken_from_.load(order);
    }
    Status error() const;       // OK, or the fault as an error
    Status status();            // the same, also if the communicator will break
    Status lost(uint32_t rank); // OK unless the control plane says that the rank is gone
    std::vector<int32_t> failed_ranks();
    bool is_idle(); // no operation is in flight
    Status abort(const char *reason);
    // This rank cannot go on: breaks the communicator on all ranks.
    void give_up(Status status, const char *text);
    // Breaks it here, earlier calls included.
    void cancel(const char *text);
    // The communicator from which this one is being made; nullptr once it is made. When the parent
    // breaks, what stalls here fails: the rank that it waits for may have given up the making.
    void set_parent(const Faults *parent);
    void shrink(); // as cancel(); the other ranks' calls fail if this rank has not ended them

    // cluster::Group and engine::OperationListener, under the agent's lock
    bool contains(uint32_t member) const override;
    void member_lost(uint32_t member, Status status, const char *text, bool silent) override;
    void member_left(uint32_t member) override;
    void peer_broken(uint32_t member, Status status, const char *text, bool over) override;
    void failed(Status status, const char *text, int32_t guilty_member, uint64_t from) override;
    void calls_wanted() override;
    void rank_behind(int32_t rank, uint64_t seq) override;
    void abandoned(uint32_t member, const char *text) override;
    bool operation_started(engine::Operation &operation) override;
    void operation_failed(engine::Operation &operation, const engine::Outcome &outcome,
                          const char *text) override;
    void operation_stalled(engine::Operation &operation) override;
    void operation_ended(engine::Operation &operation) override;

  private:
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
        bool over = false;               // no message from it is in transit
        Status lack = DTRAIN_OK;         // of this rank, for which the connection broke
        Status status = DTRAIN_ERR_PEER; // of operations that need it
        int32_t guilty = -1;             // the rank itself, or this one, which cannot reach it
    };
    struct Behind {
        uint64_t last;   // the rank's last call
        int64_t told_ns; // when that was known
    };
    static constexpr uint64_t whole = UINT64_MAX;

    // Under the agent's lock.
    bool break_with(Status status, int32_t guilty_rank, const char *text, uint64_t from);
    void tell_others(uint64_t from);
    // Says that it is this rank's; own_lack(): and not that of the rank in the text.
    std::string own(const std::string &text) const;
    std::string own_lack(Status status, const std::string &text) const;
    Gone *gone(uint32_t member);
    void look_again(const Gone *news); // about this rank; nullptr: about the communicator
    void tell_of_leaving(Gone &rank);
    const Gone *awaited_in_vain(const engine::Operation &operation) const;
    uint64_t next_call() { return order_.last() + 1; }
    uint64_t first_open();
    void fail_operation(engine::Operation &operation);
    std::string describe_operation(const engine::Operation &operation) const;
    std::string absentees(const engine::Operation &operation) const;
    void report(bool stalled, bool stuck, uint64_t up_to);

    cluster::Session &session_;
    engine::Agent &agent_;
    const Membership &ranks_;
    CallOrder &order_;
    const CallTimes &times_;

    // Guarded by the agent's lock.
    std::vector<engine::Operation *> in_flight_;
    std::vector<Gone> gone_; // by rank
    bool any_gone_ = false;
    std::map<int32_t, Behind> behind_; // by rank
    const Faults *parent_ = nullptr;
    std::vector<bool> failed_; // by rank
    int64_t reported_ns_ = 0, logged_ns_ = 0;
    Fault fault_;
    // Calls from this number on fail. Once it is not `whole`, fault_ is set and constant.
    std::atomic<uint64_t> broken_from_{whole};
};

} // namespace dtrain::collectives
