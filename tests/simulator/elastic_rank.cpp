// A rank of a job that grows and shrinks, and never goes on as two.
// SPDX-License-Identifier: Apache-2.0
#include "acts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <utility>

namespace dtrain::simulator {
namespace {

constexpr uint64_t length = 500; // of the table
// So many steps in a row may fail, as where two that live never reach each other.
constexpr int patience = 6;

// What all processes see.
// kept: some generation has handed the table on, so it is never lost. opened: the last generation
// that has the table, plus one. dropped: pushes to tables that nobody has handed on.
enum On : int { steps, generation, pushes, kept, opened, dropped, on_board };
static_assert(on_board <= std::size(decltype(World::board){}));

constexpr dtrain_status_t may_happen[] = {DTRAIN_ERR_PEER, DTRAIN_ERR_ABORTED, DTRAIN_ERR_TIMEOUT};

class ElasticRank : Caller {
  public:
    using Caller::Caller;

    void run() {
        context_ = make_context();
        if (context_ != nullptr && join()) work();
        begin();
        leave_communicator();
        if (context_ != nullptr)
            check(dtrain_context_destroy(context_), "leaving", 2 * plan.op_timeout);
    }

  private:
    // One that is stopped or cut off may be shut out; others meet losses only.
    bool passes(dtrain_status_t status, const char *call, int64_t limit) {
        if (check(status, call, limit)) return true;
        // Where as many are cut off, or have ended, as are left, nobody can know who goes on.
        const bool is_apart = status == DTRAIN_ERR_FENCED && 2 * not_there() >= plan.ranks;
        if (std::ranges::find(may_happen, status) == std::end(may_happen) && !is_apart &&
            !plan.is_suspect(process))
            fail_life("process %d: %s: %s: %s", process, call, dtrain_status_name(status),
                      last_error().c_str());
        return false;
    }
    int not_there() const {
        int count = 0;
        for (int i = 0; i < plan.workers(); i++)
            count += plan.is_suspect(i) || world->processes[i].state == Process::State::left;
        return count;
    }
    bool wants_to_leave() const {
        return plan.leaver == process && world->board[steps] >= plan.leaves_after;
    }
    bool is_over() const { return world->board[steps] >= uint64_t(plan.steps * plan.ranks); }

    bool join() {
        dtrain_comm_params_t params;
        DTRAIN_INIT(&params);
        const bool is_new = process >= plan.ranks;
        params.size = is_new ? DTRAIN_NEWCOMER : plan.ranks;
        params.rank = is_new ? -1 : process;
        params.servers = is_new ? 0 : int(plan.has_server);
        begin();
        const dtrain_status_t s =
            dtrain_comm_create(context_, plan.rendezvous.c_str(), &params, &comm_);
        if (!is_new) return check(s, "join", plan.join_timeout);
        if (s == DTRAIN_OK || !is_over()) check(s, "coming in", plan.join_timeout);
        return s == DTRAIN_OK;
    }

    void work() {
        look();
        for (int failed = 0; failed < patience;) {
            bool over = false, changed = false;
            const bool good = step(over, changed);
            if (good && over) return;
            failed = good ? 0 : failed + 1;
            if ((!good || changed) && !reform()) return;
        }
    }

    void look() {
        char text[4096] = "";
        dtrain_comm_changes(comm_, text, sizeof text);
        const char *at = std::strstr(text, "\"generation\": ");
        generation_ = at == nullptr ? 0 : strtoull(at + strlen("\"generation\": "), nullptr, 10);
        is_fresh_ = true;
    }

    // The first to do a step in a generation says for all which processes are in it.
    void check_members() {
        if (!is_fresh_) return;
        Data<int32_t> &all = processes_;
        all.resize(size_t(dtrain_comm_size(comm_)));
        const int32_t self = process;
        begin();
        if (!passes(dtrain_allgather(comm_, &self, all.data(), 1, DTRAIN_I32, nullptr, nullptr),
                    "members", plan.op_timeout))
            return;
        uint64_t who = 0;
        for (int32_t one : all) who |= uint64_t{1} << one;
        uint64_t &known = world->members_of[generation_ % std::size(world->members_of)];
        if (known != 0 && known != who)
            fail_life("process %d: generation %llu has members %#llx and %#llx", process,
                      static_cast<unsigned long long>(generation_),
                      static_cast<unsigned long long>(known), static_cast<unsigned long long>(who));
        known = who;
    }

    bool open_table() {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F64;
        params.length = length;
        params.rule = DTRAIN_RULE_ADD;
        params.consistency = generation_ % 2 == 0 ? DTRAIN_ASYNC : DTRAIN_SSP;
        params.staleness = generation_ % 2 == 0 ? 0 : 2;
        begin();
        const dtrain_status_t status = dtrain_table_create(comm_, "count", &params, &table_);
        // The server is with another side, which nobody can know to be the one that goes on.
        if (status == DTRAIN_ERR_PEER && 2 * not_there() >= plan.ranks &&
            last_error().find("not all of its values are") != std::string::npos)
            world->board[kept] = 0;
        if (!passes(status, "opening the table", 2 * plan.op_timeout)) return false;
        // It is the first one, or made anew: whoever had it before has gone, and the others had
        // given up.
        if (world->board[opened] <= generation_ && world->board[kept] == 0)
            world->board[dropped] = world->board[pushes];
        world->board[opened] = std::max(world->board[opened], generation_ + 1);
        return true;
    }

    // A push by all, a sum, and what all agree on.
    bool step(bool &over, bool &changed) {
        if (table_ == nullptr && !open_table()) return false;
        const Data<double> ones(length, 1);
        begin();
        if (!passes(dtrain_table_push(table_, 0, length, ones.data(), nullptr, nullptr), "push",
                    plan.op_timeout))
            return false;
        const uint64_t before = ++world->board[pushes];
        begin();
        if (!passes(dtrain_table_clock(table_, nullptr, nullptr), "clock", plan.op_timeout))
            return false;
        const int size = dtrain_comm_size(comm_), rank = dtrain_comm_rank(comm_);
        Data<int64_t> data(1 + generation_ % 2 * 5000, rank);
        begin();
        if (!passes(dtrain_allreduce(comm_, data.data(), data.data(), data.size(), DTRAIN_I64,
                                     DTRAIN_SUM, nullptr, nullptr),
                    "allreduce", plan.op_timeout))
            return false;
        for (int64_t x : data)
            if (x != int64_t{size} * (size - 1) / 2)
                fail_life("process %d: a sum is wrong", process);
        if (!act()) return false;
        int32_t said[2] = {is_over(), dtrain_comm_newcomers(comm_) > 0 || wants_to_leave()};
        begin();
        if (!passes(
                dtrain_allreduce(comm_, said, said, 2, DTRAIN_I32, DTRAIN_MAX, nullptr, nullptr),
                "agreement", plan.op_timeout))
            return false;
        // All of the generation have come as far as this, so they are in no later one, unless they
        // took this one for dead in the midst of the step.
        if (world->board[generation] > generation_ && !plan.is_suspect(process))
            fail_life("process %d: a step of generation %llu after one of %llu", process,
                      static_cast<unsigned long long>(generation_),
                      static_cast<unsigned long long>(world->board[generation]));
        world->board[generation] = std::max(world->board[generation], generation_);
        check_members();
        world->board[steps]++;
        over = said[0] != 0;
        changed = said[1] != 0;
        return !std::exchange(is_fresh_, false) || check_table(before);
    }

    // What all of the generation do besides, from its second step on.
    bool act() {
        if (is_fresh_) random_.seed(world->seed + generation_);
        const uint64_t chosen = random_();
        const Drawn drawn = {.count = size_t(1) << random_() % 14,
                             .other = int(random_() % uint64_t(dtrain_comm_size(comm_))),
                             .random = random_(),
                             .step = int(generation_ * 1'000 + random_() % 1'000)};
        const Act &act = all_acts()[chosen % all_acts().size()];
        if (is_fresh_ || chosen >> 32 & 1 || act.needs == Act::Needs::job) return true;
        members.assign(processes_.begin(), processes_.end());
        const bool good = act.run({*this, context_, comm_}, drawn);
        members.clear(); // other errors may name ranks of the job
        return good;
    }

    // Every answered push is in it, once; those of killed workers perhaps.
    bool check_table(uint64_t answered) {
        Data<double> values(length);
        begin();
        if (!passes(dtrain_table_pull(table_, 0, length, values.data(), nullptr, nullptr), "pull",
                    plan.op_timeout))
            return false;
        const auto [low, high] = std::ranges::minmax(values);
        answered -= std::min(answered, world->board[dropped]);
        if (low < double(answered))
            fail_life("process %d: %g pushes are in the table, %llu were answered", process, low,
                      static_cast<unsigned long long>(answered));
        // Each worker has at most one that is not counted yet, and each failed step one that was
        // not answered.
        if (high > double(world->board[pushes] + most_processes * (1 + world->board[generation])))
            fail_life("process %d: %g pushes are in the table, %llu were answered", process, high,
                      static_cast<unsigned long long>(world->board[pushes]));
        return true;
    }

    bool reform() {
        for (int tries = 0; tries < patience; tries++) {
            dtrain_reform_params_t params;
            DTRAIN_INIT(&params);
            params.leaves = wants_to_leave();
            dtrain_comm_t *next = nullptr;
            if (params.leaves != 0) world->leavers |= 1u << process;
            begin();
            const dtrain_status_t s = dtrain_comm_reform(comm_, &params, &next);
            if (s == DTRAIN_ERR_FENCED || s == DTRAIN_ERR_STATE) {
                check(s, "reform", plan.op_timeout);
                return false;
            }
            if (!passes(s, "reform", plan.op_timeout)) continue;
            if (table_ != nullptr) world->board[kept] = 1;
            leave_communicator();
            if (params.leaves != 0) return false;
            comm_ = next;
            look();
            return true;
        }
        return false;
    }
    void leave_communicator() {
        if (table_ != nullptr) dtrain_table_destroy(table_);
        if (comm_ != nullptr) dtrain_comm_destroy(comm_);
        table_ = nullptr;
        comm_ = nullptr;
    }

    dtrain_context_t *context_ = nullptr;
    dtrain_comm_t *comm_ = nullptr;
    dtrain_table_t *table_ = nullptr;
    uint64_t generation_ = 0;
    bool is_fresh_ = true;    // no step of this generation has been done
    Data<int32_t> processes_; // by rank
    std::mt19937_64 random_;  // gives the same numbers on all ranks of a generation
};

class Server : Caller {
  public:
    using Caller::Caller;

    void run() {
        dtrain_context_t *context = make_context();
        if (context == nullptr) return;
        dtrain_server_params_t params;
        DTRAIN_INIT(&params);
        params.size = plan.ranks;
        params.servers = 1;
        dtrain_server_t *server = nullptr;
        begin();
        if (check(dtrain_server_create(context, plan.rendezvous.c_str(), &params, &server),
                  "serving", plan.join_timeout)) {
            begin();
            check(dtrain_server_wait(server, -1), "waiting for the workers", never / 2);
            begin();
            check(dtrain_server_destroy(server), "leaving", plan.op_timeout);
        }
        begin();
        check(dtrain_context_destroy(context), "leaving", plan.op_timeout);
    }
};

} // namespace

void run_server(const Plan &plan, int process) { Server(plan, process).run(); }

void run_elastic_rank(const Plan &plan, int process) { ElasticRank(plan, process).run(); }

} // namespace dtrain::simulator
