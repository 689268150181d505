// SPDX-License-Identifier: Apache-2.0
#include "server_calls.h"

#include "dtrain_function.h"
#include "step_table.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace dtrain::simulator {
namespace {

constexpr char function_name[] = "twice";

// Adds twice what was pushed, and counts the updates of each element.
dtrain_status_t add_twice(void *, const dtrain_function_batch_t *batch) {
    for (uint64_t i = 0; i < batch->count; i++) {
        const dtrain_function_row_t &row = batch->rows[i];
        for (uint64_t k = 0; k < batch->dim; k++) {
            static_cast<double *>(row.values)[k] += 2 * static_cast<const double *>(row.pushed)[k];
            static_cast<uint64_t *>(row.state[0])[k]++;
        }
    }
    return DTRAIN_OK;
}

dtrain_status_t get_more(void *, const dtrain_function_batch_t *batch) {
    for (uint64_t i = 0; i < batch->count; i++)
        for (uint64_t k = 0; k < batch->dim; k++)
            static_cast<double *>(batch->rows[i].pulled)[k] =
                static_cast<const double *>(batch->rows[i].values)[k] + 0.5;
    return DTRAIN_OK;
}

// On the world's board: how often a worker has left a table with a quorum.
constexpr int quorums_left = 7;
constexpr uint64_t updates_before = 1'000;

class AskedTable : public StepTable {
  public:
    using StepTable::StepTable;

    void describe(const Data<uint64_t> &keys) {
        uint32_t servers = 0;
        double share = 0;
        dtrain_table_server_t server;
        DTRAIN_INIT(&server);
        for (; dtrain_table_describe_server(table_, servers, &server) == DTRAIN_OK; servers++)
            share += server.share;
        Data<uint32_t> places(keys.size(), servers);
        if (dtrain_table_locate(table_, keys.data(), keys.size(), places.data()) != DTRAIN_OK ||
            std::ranges::max(places) >= servers || std::abs(share - 1) > 1e-9)
            wrong("its servers");
        const char *name = nullptr;
        uint32_t dtype = 0;
        uint64_t numbers = 0;
        if (dtrain_table_describe_state(table_, 0, &name, &dtype, &numbers) != DTRAIN_OK ||
            name != std::string_view("momentum") || dtype != DTRAIN_F64 || numbers != params.dim)
            wrong("its state");
        uint64_t sum = 0;
        for (uint32_t i = 0; i < servers; i++) sum += requests(int32_t(i));
        if (sum == 0 || sum != requests(-1)) wrong("its requests");
    }
    // Each server goes on from the number that was set.
    bool push(const Data<uint64_t> &keys, const Data<double> &values) {
        dtrain_request_t *request = nullptr;
        here_.caller.begin();
        bool good = here_.check(dtrain_table_push_rows(table_, keys.data(), keys.size(),
                                                       values.data(), nullptr, &request),
                                "posting a push of rows");
        if (request == nullptr) return good;
        good = here_.check(dtrain_request_wait(request, -1), "push of rows") && good;
        dtrain_event_t event = {};
        const dtrain_status_t status = dtrain_request_result(request, &event);
        if (status != DTRAIN_OK || (event.status == DTRAIN_OK) != good) wrong("a request's result");
        if (good && (event.version <= updates_before ||
                     event.version > updates_before + here_.caller.members.size()))
            wrong("its version");
        dtrain_request_free(request);
        return good;
    }

  private:
    uint64_t requests(int32_t server) {
        dtrain_table_stats_t stats;
        DTRAIN_INIT(&stats);
        if (dtrain_stats_table(table_, server, &stats) != DTRAIN_OK) wrong("its statistics");
        return stats.requests;
    }
    void wrong(const char *what) {
        fail_life("process %d: what a table says of %s is wrong", here_.caller.process, what);
    }
};

} // namespace

dtrain_status_t register_function(dtrain_context_t *context) {
    static constexpr dtrain_function_state_t states[] = {{"updates", DTRAIN_U64, 0}};
    dtrain_function_t function;
    DTRAIN_INIT(&function);
    function.abi = DTRAIN_FUNCTION_ABI;
    function.name = function_name;
    function.states = states;
    function.state_count = 1;
    function.update = add_twice;
    function.get = get_more;
    return dtrain_function_register(context, &function);
}

// ASYNC: an update per push; BSP: one per clock, of the sum.
bool apply_a_function(const Here &here, int step, uint64_t random) {
    constexpr uint64_t length = 800;
    const bool is_bsp = random % 2 != 0;
    StepTable table(here);
    table.params.length = length;
    table.params.rule = DTRAIN_RULE_FUNCTION;
    table.params.function = function_name;
    table.params.consistency = is_bsp ? DTRAIN_BSP : DTRAIN_ASYNC;
    if (!table.make("function", step)) return false;
    const Data<double> ones(length, 1);
    Data<double> values(length, -1);
    Data<uint64_t> updates(length, 0);
    const auto size = double(here.caller.members.size());
    for (int i = 1; i <= 2; i++) {
        if (!table.does("push to a function", dtrain_table_push, 0, length, ones.data()) ||
            !table.does("clock of a function", dtrain_table_clock) || !table.barrier() ||
            !table.does("pull of a function", dtrain_table_pull, 0, length, values.data()) ||
            !table.does("pull of a function's state", dtrain_table_pull_state, 0, 0, length,
                        updates.data()))
            return false;
        table.expect(values, i * 2.0 * table.present() + 0.5, i * 2.0 * size + 0.5,
                     "pull of a function");
        const auto least = uint64_t(is_bsp ? i : i * table.present()),
                   most = uint64_t(is_bsp ? i : i * int(size));
        for (const uint64_t count : updates)
            if (count < least || count > most)
                fail_life("process %d: a function has made %llu updates of an element",
                          here.caller.process, static_cast<unsigned long long>(count));
        if (!table.barrier()) return false; // nobody pushes again before all have looked
    }
    return table.destroy();
}

// Each update has the pushes of just so many workers, unless fewer are left.
bool reach_a_quorum(const Here &here, int step, int random) {
    constexpr uint64_t length = 600;
    constexpr int clocks = 3;
    const auto size = int(here.caller.members.size());
    StepTable table(here);
    table.params.length = length;
    table.params.rule = DTRAIN_RULE_ADD;
    table.params.consistency = DTRAIN_QUORUM;
    table.params.quorum = uint32_t(1 + random % size);
    if (!table.make("quorum", step)) return false;
    uint64_t &left = world->board[quorums_left];
    const uint64_t left_before = left;
    if (!table.barrier()) return false; // only then can anybody be ready to leave this one
    const auto all_are_there = [&] {
        return left == left_before && table.present() == size &&
               std::ranges::none_of(here.caller.members, [](int member) {
                   return world->processes[member].killed_at < world->clock;
               });
    };
    const Data<double> ones(length, 1);
    Data<double> values(length, -1);
    const auto quorum = double(table.params.quorum);
    for (int i = 1; i <= clocks; i++) {
        if (!table.does("push to a quorum", dtrain_table_push, 0, length, ones.data()) ||
            !table.does("clock of a quorum", dtrain_table_clock) ||
            !table.does("pull of a quorum", dtrain_table_pull, 0, length, values.data()))
            return false;
        if (!all_are_there()) continue;
        table.expect(values, i * quorum, clocks * double(size), "pull of a quorum");
        for (const double value : values)
            if (std::fmod(value, quorum) != 0)
                fail_life("process %d: %g pushes were counted, the quorum is %g",
                          here.caller.process, value, quorum);
    }
    left++;
    return table.destroy();
}

// What it says of itself fits together, and with what was done.
bool ask_a_table(const Here &here, int step, int chief) {
    constexpr uint64_t width = 2, count = 300;
    AskedTable table(here);
    table.params.dim = width;
    table.params.rule = DTRAIN_RULE_MOMENTUM;
    table.params.learning_rate = 1;
    if (!table.make("asked", step)) return false;
    Data<uint64_t> keys(count);
    for (size_t i = 0; i < count; i++) keys[i] = i * 0x9E3779B97F4A7C15u;
    Data<double> momentum(count * width, 10), values(count * width, -1);
    if (here.rank() == chief &&
        (!table.does("set of rows' state", dtrain_table_set_state_rows, 0, keys.data(), count,
                     momentum.data()) ||
         !table.does("set of updates", dtrain_table_set_updates, updates_before)))
        return false;
    if (!table.barrier() || !table.does("pull of rows' state", dtrain_table_pull_state_rows, 0,
                                        keys.data(), count, values.data()))
        return false;
    table.expect(values, 10, 10, "pull of rows' state");
    table.describe(keys);
    return table.barrier() && table.push(keys, values) && table.destroy();
}

} // namespace dtrain::simulator
