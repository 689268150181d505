// A rank of a job that only shrinks.
// SPDX-License-Identifier: Apache-2.0
#include "acts.h"
#include "basic_calls.h"
#include "kept_table.h"
#include "lasting_table.h"
#include "long_tables.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <random>
#include <utility>

namespace dtrain::simulator {
namespace {

constexpr int patience = 3;

class FixedRank : Caller {
  public:
    using Caller::Caller;

    void run() {
        random_.seed(world->seed);
        if (join())
            for (; step_ < plan.steps; step_++)
                if (!one_step() && !go_on()) break;
        end();
        if (plan.restarts) start_again();
    }

  private:
    struct OwnAct {
        const char *name;
        bool (FixedRank::*run)(const Drawn &drawn);
    };
    static const OwnAct own_acts[];

    int size() const { return int(members.size()); }
    int rank() const { return dtrain_comm_rank(comm_); }
    bool check_op(dtrain_status_t status, const char *call) {
        return check(status, call, plan.op_timeout);
    }
    bool join() {
        members.resize(size_t(plan.ranks));
        std::iota(members.begin(), members.end(), 0);
        context_ = make_context();
        return context_ != nullptr && join(plan.rendezvous, process, plan.has_server, &comm_);
    }
    bool join(const std::string &rendezvous, int rank, int servers, dtrain_comm_t **comm) {
        dtrain_comm_params_t params;
        DTRAIN_INIT(&params);
        params.size = size();
        params.rank = rank;
        params.servers = servers;
        begin();
        world->joining |= 1u << process;
        const dtrain_status_t status =
            dtrain_comm_create(context_, rendezvous.c_str(), &params, comm);
        world->joining &= ~(1u << process);
        return check(status, "join", plan.join_timeout);
    }
    // Where the first of the members meets the others, besides the first job.
    std::string next_to_it(int port) const {
        return "tcp://10.0.0." + std::to_string(members[0] + 1) + ":" + std::to_string(port);
    }

    // Once the first job is over for everybody, a second one has what was saved.
    void start_again() {
        world->ended_first_job |= 1u << process;
        while (world->second_job == 0) {
            uint32_t left = 0, missing = 0;
            for (int i = 0; i < plan.ranks; i++)
                if (world->processes[i].state != Process::State::killed)
                    (world->ended_first_job >> i & 1 ? left : missing) |= 1u << i;
            if (missing == 0)
                world->second_job = left;
            else
                sleep_until(world->clock + 5 * ms);
        }
        members.clear();
        for (int i = 0; i < plan.ranks; i++)
            if (world->second_job >> i & 1) members.push_back(i);
        world->leavers &= ~(1u << process);
        const int rank = std::popcount(world->second_job & ((1u << process) - 1));
        context_ = make_context();
        if (context_ != nullptr && join(next_to_it(7001), rank, 0, &comm_) && kept_.make(comm_))
            kept_.restore(0);
        end();
    }

    bool one_step();

    Here here() { return {*this, context_, comm_}; }
    bool table(const Drawn &drawn) { return has_shrunk_ || tables_.count(here(), drawn.step); }
    bool rows(const Drawn &drawn) {
        return has_shrunk_ || tables_.count_rows(here(), drawn.step, drawn.count);
    }
    bool clocks(const Drawn &drawn) {
        return has_shrunk_ || tables_.clocks(here(), drawn.step, drawn.other);
    }
    bool save(const Drawn &drawn) {
        if (has_shrunk_) return true;
        return (kept_.is_made() || kept_.make(comm_)) && kept_.save(drawn.other);
    }
    bool restore(const Drawn &drawn) {
        if (has_shrunk_) return true;
        return (kept_.is_made() || kept_.make(comm_)) && kept_.restore(drawn.other);
    }
    // Of a dedicated server. After workers were lost, those who are left agree anew on its mode.
    bool lasting(const Drawn &drawn) {
        static constexpr uint32_t modes[] = {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP};
        if (!plan.has_server) return true;
        if (!lasting_.is_made() && (has_shrunk_ || !lasting_.make(comm_))) return has_shrunk_;
        const bool change = !lasting_goes_on_ || drawn.random % 4 == 0;
        if (!lasting_.use(comm_, modes[drawn.random / 4 % 3], change)) return false;
        lasting_goes_on_ = true;
        return true;
    }
    // Another job of the same context. Not in dense lives: ranks that wait for others that have
    // gone on without them make too many calls.
    bool twin(const Drawn &drawn) {
        if (plan.is_dense) return true;
        dtrain_comm_t *other = nullptr;
        if (!join(next_to_it(7002), rank(), 0, &other)) return false;
        const bool good = sum({*this, context_, other}, drawn.count);
        dtrain_comm_destroy(other);
        return good;
    }

    // Those who are left shrink, and the work goes on.
    bool go_on() {
        dtrain_comm_t *smaller = nullptr;
        check_failed(comm_);
        begin();
        if (!check(dtrain_comm_shrink(comm_, &smaller), "shrink",
                   plan.op_timeout + 2 * plan.silence))
            return false;
        const bool is_smaller = dtrain_comm_size(smaller) < size();
        leave_communicator();
        comm_ = smaller;
        has_shrunk_ = true;
        lasting_goes_on_ = false;
        // Two that live may never reach each other.
        if (!is_smaller && ++in_vain_ == patience) return false;
        const auto others = size_t(dtrain_comm_size(comm_));
        struct Known {
            int32_t process, step, lasts;
        } const own = {process, step_, lasting_.is_made()};
        Data<Known> all(others);
        if (dtrain_allgather(comm_, &own, all.data(), sizeof own, DTRAIN_U8, nullptr, nullptr) !=
            DTRAIN_OK)
            return false; // whom it names is not known
        members.clear();
        for (const Known &one : all) {
            members.push_back(one.process);
            step_ = std::max(step_, one.step);      // some may have ended what failed here
            if (one.lasts == 0) lasting_.destroy(); // its creation failed there
        }
        random_.seed(world->seed + others);
        // Its mode is agreed on anew before anything else happens.
        return !lasting_.is_made() || random_() % 2 == 0 ||
               lasting({.count = 0, .other = 0, .random = random_(), .step = step_}) || go_on();
    }
    void leave_communicator() {
        tables_.destroy();
        kept_.destroy();
        if (comm_ != nullptr) dtrain_comm_destroy(comm_);
        comm_ = nullptr;
    }
    // Each table may wait for the last requests of the others.
    void end() {
        const int tables = tables_.made() + kept_.is_made() + lasting_.is_made();
        world->leavers |= 1u << process;
        begin();
        lasting_.destroy();
        leave_communicator();
        if (context_ != nullptr)
            check(dtrain_context_destroy(context_), "leaving", (1 + tables) * plan.op_timeout);
        context_ = nullptr;
    }

    std::mt19937_64 random_; // gives the same numbers on all ranks
    int step_ = 0;
    int in_vain_ = 0; // shrinks that have lost nobody
    bool has_shrunk_ = false;
    dtrain_context_t *context_ = nullptr;
    dtrain_comm_t *comm_ = nullptr;
    LongTables tables_;
    KeptTable kept_{*this};
    LastingTable lasting_{*this};
    bool lasting_goes_on_ = true; // in the mode that the members have agreed on
};

constexpr FixedRank::OwnAct FixedRank::own_acts[] = {
    {"lasting", &FixedRank::lasting}, {"table", &FixedRank::table},
    {"clocks", &FixedRank::clocks},   {"rows", &FixedRank::rows},
    {"save", &FixedRank::save},       {"restore", &FixedRank::restore},
    {"twin", &FixedRank::twin},
};

bool FixedRank::one_step() {
    const Drawn drawn = {.count = size_t(1) << random_() % 16,
                         .other = int(random_() % uint64_t(size())),
                         .random = random_(),
                         .step = step_};
    const bool lasts = plan.has_server && random_() % 4 == 0; // of the first act
    constexpr size_t own = std::size(own_acts);
    const size_t chosen = lasts ? 0 : random_() % (own + all_acts().size());
    begin();
    if (chosen < own) return (this->*own_acts[chosen].run)(drawn);
    const Act &act = all_acts()[chosen - own];
    // A communicator that shrink() has made has no tables.
    return (has_shrunk_ && act.needs != Act::Needs::nothing) || act.run(here(), drawn);
}

} // namespace

void run_fixed_rank(const Plan &plan, int process) { FixedRank(plan, process).run(); }

} // namespace dtrain::simulator
