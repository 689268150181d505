// A rank of a job that only shrinks.
// SPDX-License-Identifier: Apache-2.0
#include "kept_table.h"
#include "lasting_table.h"
#include "message_calls.h"
#include "table_calls.h"
#include "uneven_calls.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <random>
#include <utility>

namespace dtrain::simulator {
namespace {

constexpr uint64_t table_length = 3000;
constexpr size_t row_length = 4, most_rows = 1 + (1 << 15) / 64;
constexpr int patience = 3;
// A queue looks so long whether anything moves, once a tensor is out of time.
constexpr int64_t stuck = 6 * second;

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
    struct Act {
        const char *name;
        bool (FixedRank::*run)(size_t count, int other);
    };
    static constexpr size_t act_count = 38;
    static const Act acts[act_count];

    int size() const { return int(members.size()); }
    int rank() const { return dtrain_comm_rank(comm_); }
    bool check_op(dtrain_status_t status, const char *call) {
        return check(status, call, plan.op_timeout);
    }
    template <class Value> void expect(Value got, Value wanted, const char *call, size_t at) {
        if (got != wanted)
            fail_life("process %d: %s, step %d: element %zu is wrong", process, call, step_, at);
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

    bool one_step() {
        const size_t count = size_t(1) << random_() % 16;
        const bool lasts = plan.has_server && random_() % 4 == 0; // of the first act
        const Act &act = acts[lasts ? 0 : random_() % act_count];
        const int other = int(random_() % uint64_t(size()));
        begin();
        return (this->*act.run)(count, other);
    }

    bool barrier(size_t, int) {
        return check_op(dtrain_barrier(comm_, nullptr, nullptr), "barrier");
    }

    Data<int64_t> numbers(size_t count) const {
        Data<int64_t> out(count);
        std::iota(out.begin(), out.end(), process);
        return out;
    }
    void expect_sums(const Data<int64_t> &data, const char *call) {
        const int64_t sum = std::accumulate(members.begin(), members.end(), int64_t{0});
        for (size_t i = 0; i < data.size(); i++)
            expect(data[i], sum + int64_t(i) * size(), call, i);
    }
    bool allreduce(size_t count, int) {
        Data<int64_t> data = numbers(count);
        if (!check_op(dtrain_allreduce(comm_, data.data(), data.data(), count, DTRAIN_I64,
                                       DTRAIN_SUM, nullptr, nullptr),
                      "allreduce"))
            return false;
        expect_sums(data, "allreduce");
        return true;
    }
    // In flight at once; waited for in another order on each rank.
    bool several(size_t count, int) {
        constexpr size_t most = 4;
        Data<int64_t> data[most];
        dtrain_request_t *requests[most] = {};
        bool good = true;
        for (size_t i = 0; i < most && good; i++) {
            data[i] = numbers(count / (i + 1) + 1);
            good = check_op(dtrain_allreduce(comm_, data[i].data(), data[i].data(), data[i].size(),
                                             DTRAIN_I64, DTRAIN_SUM, nullptr, &requests[i]),
                            "posting allreduce");
        }
        for (size_t i = 0; i < most; i++) {
            dtrain_request_t *request = requests[(i + size_t(process)) % most];
            if (request == nullptr) continue;
            good = check_op(dtrain_request_wait(request, -1), "allreduce in flight") && good;
            dtrain_request_free(request);
        }
        if (good)
            for (const auto &one : data) expect_sums(one, "allreduce in flight");
        return good;
    }
    bool broadcast(size_t count, int root) {
        Data<int32_t> data(count, rank() == root ? root + 17 : -1);
        if (!check_op(
                dtrain_broadcast(comm_, data.data(), count, DTRAIN_I32, root, nullptr, nullptr),
                "broadcast"))
            return false;
        for (size_t i = 0; i < count; i++) expect(data[i], root + 17, "broadcast", i);
        return true;
    }
    bool allgather(size_t count, int) {
        count = count / 8 + 1;
        Data<int32_t> own(count, process), all(count * members.size(), -1);
        if (!check_op(dtrain_allgather(comm_, own.data(), all.data(), count, DTRAIN_I32, nullptr,
                                       nullptr),
                      "allgather"))
            return false;
        for (size_t i = 0; i < all.size(); i++) expect(all[i], members[i / count], "allgather", i);
        return true;
    }
    bool alltoall(size_t count, int) {
        count = count / 8 + 1;
        Data<int32_t> in(count * members.size()), out(in.size(), -1);
        for (size_t i = 0; i < in.size(); i++) in[i] = process * 100 + int32_t(i / count);
        if (!check_op(
                dtrain_alltoall(comm_, in.data(), out.data(), count, DTRAIN_I32, nullptr, nullptr),
                "alltoall"))
            return false;
        for (size_t i = 0; i < out.size(); i++)
            expect(out[i], members[i / count] * 100 + rank(), "alltoall", i);
        return true;
    }
    // Blocks of a sum, which one rank then collects.
    bool blocks(size_t count, int root) {
        count = count / 8 + 1;
        Data<int64_t> in(count * members.size()), out(count, -1);
        for (size_t i = 0; i < in.size(); i++) in[i] = process + int64_t(i / count);
        if (!check_op(dtrain_reduce_scatter(comm_, in.data(), out.data(), count, DTRAIN_I64,
                                            DTRAIN_SUM, nullptr, nullptr),
                      "reduce_scatter"))
            return false;
        const int64_t sum = std::accumulate(members.begin(), members.end(), int64_t{0});
        for (size_t i = 0; i < count; i++)
            expect(out[i], sum + int64_t{rank()} * size(), "reduce_scatter", i);
        const bool collects = rank() == root;
        Data<int64_t> all(collects ? in.size() : 0, -1);
        begin();
        if (!check_op(dtrain_gather(comm_, out.data(), collects ? all.data() : nullptr, count,
                                    DTRAIN_I64, root, nullptr, nullptr),
                      "gather"))
            return false;
        for (size_t i = 0; i < all.size(); i++)
            expect(all[i], sum + int64_t(i / count) * size(), "gather", i);
        std::ranges::fill(out, -1);
        begin();
        if (!check_op(dtrain_scatter(comm_, collects ? in.data() : nullptr, out.data(), count,
                                     DTRAIN_I64, root, nullptr, nullptr),
                      "scatter"))
            return false;
        for (size_t i = 0; i < count; i++)
            expect(out[i], int64_t{members[size_t(root)]} + rank(), "scatter", i);
        return true;
    }
    // To the next rank, from the one before, both at once.
    bool messages(size_t count, int) {
        const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
        Data<int32_t> in(count, -1), out(count, process);
        dtrain_request_t *request = nullptr;
        if (!check_op(
                dtrain_recv(comm_, in.data(), count, DTRAIN_I32, before, 1, nullptr, &request),
                "recv"))
            return false;
        bool good = check_op(
            dtrain_send(comm_, out.data(), count, DTRAIN_I32, next, 1, nullptr, nullptr), "send");
        begin();
        good = check_op(dtrain_request_wait(request, -1), "wait of recv") && good;
        dtrain_request_free(request);
        for (size_t i = 0; i < count && good; i++)
            expect(in[i], members[size_t(before)], "recv", i);
        return good;
    }
    // What was acknowledged is there after a barrier, once.
    bool table(size_t, int) {
        if (has_shrunk_) return true; // such a communicator has no tables
        if (table_ == nullptr && !make_table()) return false;
        const Data<double> ones(table_length, 1);
        begin();
        if (!check_op(dtrain_table_push(table_, 0, table_length, ones.data(), nullptr, nullptr),
                      "push"))
            return false;
        pushed_ += size();
        begin();
        if (!barrier(0, 0)) return false;
        Data<double> values(table_length, -1);
        begin();
        if (!check_op(dtrain_table_pull(table_, 0, table_length, values.data(), nullptr, nullptr),
                      "pull"))
            return false;
        for (size_t i = 0; i < values.size(); i++) expect(values[i], pushed_, "pull", i);
        begin();
        return barrier(0, 0); // nobody pushes again before all have looked
    }
    bool make_table() {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F64;
        params.length = table_length;
        params.rule = DTRAIN_RULE_ADD;
        pushed_ = 0;
        return check(dtrain_table_create(comm_, ("table " + std::to_string(step_)).c_str(), &params,
                                         &table_),
                     "creating a table", 2 * plan.op_timeout);
    }
    // The same of rows, of which each call has the first ones.
    bool rows(size_t count, int) {
        if (has_shrunk_) return true;
        if (sparse_ == nullptr && !make_rows()) return false;
        Data<uint64_t> keys(count / 64 + 1);
        for (size_t i = 0; i < keys.size(); i++) keys[i] = i * 0x9E3779B97F4A7C15u;
        const Data<double> ones(keys.size() * row_length, 1);
        begin();
        if (!check_op(dtrain_table_push_rows(sparse_, keys.data(), keys.size(), ones.data(),
                                             nullptr, nullptr),
                      "push of rows"))
            return false;
        for (size_t i = 0; i < keys.size(); i++) pushed_rows_[i] += size();
        begin();
        if (!barrier(0, 0)) return false;
        Data<double> values(ones.size(), -1);
        begin();
        if (!check_op(dtrain_table_pull_rows(sparse_, keys.data(), keys.size(), values.data(),
                                             nullptr, nullptr),
                      "pull of rows"))
            return false;
        for (size_t i = 0; i < values.size(); i++)
            expect(values[i], pushed_rows_[i / row_length], "pull of rows", i);
        begin();
        return barrier(0, 0);
    }
    bool make_rows() {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F64;
        params.dim = row_length;
        params.rule = DTRAIN_RULE_ADD;
        pushed_rows_.assign(most_rows, 0);
        return check(dtrain_table_create(comm_, ("rows " + std::to_string(step_)).c_str(), &params,
                                         &sparse_),
                     "creating a table", 2 * plan.op_timeout);
    }
    bool save(size_t, int chief) {
        if (has_shrunk_) return true;
        return (kept_.is_made() || kept_.make(comm_)) && kept_.save(chief);
    }
    bool restore(size_t, int chief) {
        if (has_shrunk_) return true;
        return (kept_.is_made() || kept_.make(comm_)) && kept_.restore(chief);
    }
    // A pull waits for the clocks of other workers: BSP for all, SSP for those of two clocks ago.
    bool clocks(size_t, int other) {
        constexpr uint32_t staleness = 2;
        if (has_shrunk_) return true;
        if (clocked_ == nullptr) {
            dtrain_table_params_t params;
            DTRAIN_INIT(&params);
            params.dtype = DTRAIN_F64;
            params.length = table_length;
            params.rule = DTRAIN_RULE_ADD;
            params.consistency = other % 2 == 0 ? DTRAIN_BSP : DTRAIN_SSP;
            params.staleness = other % 2 == 0 ? 0 : staleness;
            is_bsp_ = other % 2 == 0;
            clock_ = 0;
            if (!check(dtrain_table_create(comm_, ("clocks " + std::to_string(step_)).c_str(),
                                           &params, &clocked_),
                       "creating a table", 2 * plan.op_timeout))
                return false;
        }
        const Data<double> ones(table_length, 1);
        for (int i = 0; i < 3; i++) {
            begin();
            if (!check_op(
                    dtrain_table_push(clocked_, 0, table_length, ones.data(), nullptr, nullptr),
                    "push in a clock"))
                return false;
            begin();
            if (!check_op(dtrain_table_clock(clocked_, nullptr, nullptr), "clock")) return false;
            clock_++;
            Data<double> values(table_length, -1);
            begin();
            if (!check_op(
                    dtrain_table_pull(clocked_, 0, table_length, values.data(), nullptr, nullptr),
                    "pull after a clock"))
                return false;
            // Of the others, one may be as far ahead as its own pulls allow.
            const int least = is_bsp_ ? clock_ : std::max(0, clock_ - int(staleness));
            const int most = is_bsp_ ? clock_ : clock_ + int(staleness) + 1;
            // One that has left, perhaps since it lacked memory, does not count any more.
            const int there = size() - std::popcount(world->leavers);
            for (size_t k = 0; k < values.size(); k++)
                if (values[k] < there * least || values[k] > size() * most)
                    fail_life("process %d: at clock %d, element %zu is %g", process, clock_, k,
                              values[k]);
        }
        if (other % 3 != 0) return true;
        begin(); // others may still wait for it
        return check(dtrain_table_destroy(std::exchange(clocked_, nullptr)), "destroying a table",
                     2 * plan.op_timeout);
    }
    // Each rank submits them in another order.
    bool gradients(size_t count, int) {
        constexpr size_t most = 5;
        static constexpr const char *names[most] = {"a", "b", "c", "d", "e"};
        dtrain_gradients_t *queue = nullptr;
        if (!check(dtrain_gradients_create(comm_, nullptr, &queue), "creating a queue",
                   2 * plan.op_timeout))
            return false;
        Data<int64_t> data[most];
        dtrain_request_t *requests[most] = {};
        bool good = true;
        begin();
        for (size_t i = 0; i < most && good; i++) {
            const size_t k = (i + size_t(process)) % most;
            data[k] = numbers(count / (k + 1) + 1);
            good = check_op(dtrain_gradients_submit(queue, names[k], data[k].data(), data[k].data(),
                                                    data[k].size(), DTRAIN_I64, DTRAIN_SUM, nullptr,
                                                    &requests[k]),
                            "submit");
        }
        for (dtrain_request_t *request : requests) {
            if (request == nullptr) continue;
            good = check(dtrain_request_wait(request, -1), "gradient", plan.op_timeout + stuck) &&
                   good;
            dtrain_request_free(request);
        }
        dtrain_gradients_destroy(queue);
        if (good)
            for (const auto &one : data) expect_sums(one, "gradient");
        return good;
    }
    bool split(size_t count, int) {
        dtrain_comm_t *half = nullptr;
        if (!check(dtrain_comm_split(comm_, rank() % 2, 0, &half), "split", 2 * plan.op_timeout))
            return false;
        const std::vector<int> all = members;
        members.clear();
        for (size_t i = size_t(rank()) % 2; i < all.size(); i += 2) members.push_back(all[i]);
        dtrain_comm_t *const whole = std::exchange(comm_, half);
        begin();
        const bool good = allreduce(count, 0);
        dtrain_comm_destroy(half);
        comm_ = whole;
        members = all;
        begin();
        return good && barrier(0, 0);
    }

    Here here() { return {*this, context_, comm_}; }
    bool persistent(size_t count, int) { return sum_again_and_again(here(), count); }
    bool averages(size_t count, int) { return average_with_neighbors(here(), count); }
    bool aborted(size_t, int who) { return abort_a_copy(here(), who) && barrier(0, 0); }
    bool abandoned(size_t, int who) { return abandon_a_copy(here(), who) && next_barrier(); }
    bool late(size_t count, int who) {
        const int64_t timeout = int64_t(random_() % 5'000 + 1) * ms;
        return come_late(here(), count, who, timeout) && next_barrier();
    }
    bool threads(size_t count, int) { return sum_in_two_threads(here(), count); }
    bool canceled(size_t, int) { return cancel_a_receive(here()); }
    bool registered(size_t count, int) { return sum_in_registered_memory(here(), count); }
    bool unequal(size_t count, int root) { return move_unequal_blocks(here(), count, root); }
    bool compressed(size_t count, int) {
        return sum_compressed(here(), count, 1 + uint32_t(random_() % DTRAIN_COMPRESS_POWERSGD));
    }
    bool subset(size_t count, int other) {
        return sum_in_a_subset(here(), count, random_() | uint64_t{1} << other) && next_barrier();
    }
    bool group(size_t count, int other) {
        if (has_shrunk_) return true; // its errors name ranks of the job
        const uint64_t chosen = random_() | uint64_t{1} << other;
        return sum_in_a_group(here(), count, chosen, step_) && next_barrier();
    }
    // The next one's letters are not for this one's receives from anybody.
    bool mail(size_t count, int) { return exchange_mail(here(), count) && next_barrier(); }
    bool too_early(size_t count, int) { return receive_too_early(here(), count); }
    bool mixed(size_t count, int) { return mix_calls(here(), count); }
    bool events(size_t count, int) { return take_events(here(), count); }
    bool neighbors(size_t count, int) { return exchange_with_neighbors(here(), count); }
    bool joined(size_t count, int who) { return join_queue_early(here(), count, who); }
    bool modes(size_t, int) {
        const uint64_t random = random_();
        return has_shrunk_ || change_consistency(here(), step_, random);
    }
    bool exchanged(size_t, int chief) {
        return has_shrunk_ || set_and_exchange(here(), step_, chief);
    }
    bool erased(size_t, int chief) {
        return has_shrunk_ || set_and_erase_rows(here(), step_, chief);
    }
    // Of a dedicated server. After workers were lost, those who are left agree anew on its mode.
    bool lasting(size_t, int) {
        static constexpr uint32_t modes[] = {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP};
        const uint64_t random = random_();
        if (!plan.has_server) return true;
        if (!lasting_.is_made() && (has_shrunk_ || !lasting_.make(comm_))) return has_shrunk_;
        const bool change = !lasting_goes_on_ || random % 4 == 0;
        if (!lasting_.use(comm_, modes[random / 4 % 3], change)) return false;
        lasting_goes_on_ = true;
        return true;
    }
    // Another job of the same context.
    bool twin(size_t count, int) {
        dtrain_comm_t *other = nullptr;
        if (!join(next_to_it(7002), rank(), 0, &other)) return false;
        dtrain_comm_t *const first = std::exchange(comm_, other);
        begin();
        const bool good = allreduce(count, 0);
        dtrain_comm_destroy(other);
        comm_ = first;
        return good;
    }
    bool next_barrier() {
        begin();
        return barrier(0, 0);
    }

    // Those who are left shrink, and the work goes on.
    bool go_on() {
        dtrain_comm_t *smaller = nullptr;
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
        return !lasting_.is_made() || random_() % 2 == 0 || lasting(0, 0) || go_on();
    }
    void leave_communicator() {
        if (table_ != nullptr) dtrain_table_destroy(table_);
        if (clocked_ != nullptr) dtrain_table_destroy(clocked_);
        if (sparse_ != nullptr) dtrain_table_destroy(sparse_);
        kept_.destroy();
        if (comm_ != nullptr) dtrain_comm_destroy(comm_);
        table_ = clocked_ = sparse_ = nullptr;
        comm_ = nullptr;
    }
    // Each table may wait for the last requests of the others.
    void end() {
        const int tables = (table_ != nullptr) + (clocked_ != nullptr) + (sparse_ != nullptr) +
                           kept_.is_made() + lasting_.is_made();
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
    dtrain_table_t *table_ = nullptr, *clocked_ = nullptr; // ASYNC; BSP or SSP
    dtrain_table_t *sparse_ = nullptr;
    Data<double> pushed_rows_; // to each element of a row
    int clock_ = 0;
    bool is_bsp_ = false;
    double pushed_ = 0; // to each element of the table
    KeptTable kept_{*this};
    LastingTable lasting_{*this};
    bool lasting_goes_on_ = true; // in the mode that the members have agreed on
};

constexpr FixedRank::Act FixedRank::acts[act_count] = {
    {"lasting", &FixedRank::lasting},
    {"allreduce", &FixedRank::allreduce},
    {"several", &FixedRank::several},
    {"barrier", &FixedRank::barrier},
    {"broadcast", &FixedRank::broadcast},
    {"allgather", &FixedRank::allgather},
    {"alltoall", &FixedRank::alltoall},
    {"messages", &FixedRank::messages},
    {"table", &FixedRank::table},
    {"gradients", &FixedRank::gradients},
    {"split", &FixedRank::split},
    {"clocks", &FixedRank::clocks},
    {"save", &FixedRank::save},
    {"restore", &FixedRank::restore},
    {"rows", &FixedRank::rows},
    {"blocks", &FixedRank::blocks},
    {"persistent", &FixedRank::persistent},
    {"group", &FixedRank::group},
    {"averages", &FixedRank::averages},
    {"aborted", &FixedRank::aborted},
    {"abandoned", &FixedRank::abandoned},
    {"late", &FixedRank::late},
    {"threads", &FixedRank::threads},
    {"canceled", &FixedRank::canceled},
    {"registered", &FixedRank::registered},
    {"unequal", &FixedRank::unequal},
    {"compressed", &FixedRank::compressed},
    {"subset", &FixedRank::subset},
    {"events", &FixedRank::events},
    {"neighbors", &FixedRank::neighbors},
    {"joined", &FixedRank::joined},
    {"modes", &FixedRank::modes},
    {"exchanged", &FixedRank::exchanged},
    {"erased", &FixedRank::erased},
    {"twin", &FixedRank::twin},
    {"mail", &FixedRank::mail},
    {"too_early", &FixedRank::too_early},
    {"mixed", &FixedRank::mixed},
};

} // namespace

void run_fixed_rank(const Plan &plan, int process) { FixedRank(plan, process).run(); }

} // namespace dtrain::simulator
