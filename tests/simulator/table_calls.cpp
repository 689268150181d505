// SPDX-License-Identifier: Apache-2.0
#include "table_calls.h"

#include "step_table.h"

namespace dtrain::simulator {
namespace {

// What was pushed in one mode is there in the next one.
class ModesTable : public StepTable {
  public:
    using StepTable::StepTable;

    bool change(uint32_t mode) {
        dtrain_table_params_t to;
        DTRAIN_INIT(&to);
        to.consistency = mode;
        to.staleness = mode == DTRAIN_SSP ? 2 : 0;
        here_.caller.begin();
        if (!here_.caller.check(dtrain_table_set_consistency(here_.comm, table_, &to, nullptr),
                                "changing the mode", 2 * here_.caller.plan.op_timeout))
            return false;
        mode_ = mode;
        return true;
    }
    // All that was pushed, and in the step that follows perhaps what others push by now.
    bool step() {
        const Data<double> ones(length, 1);
        if (!does("push in a mode", dtrain_table_push, 0, length, ones.data())) return false;
        pushed_++;
        if (!does("clock in a mode", dtrain_table_clock)) return false;
        Data<double> values(length, -1);
        if (!barrier() || !does("pull in a mode", dtrain_table_pull, 0, length, values.data()))
            return false;
        expect(values, pushed_ * present(), pushed_ * double(here_.caller.members.size()),
               mode_ == DTRAIN_BSP ? "pull under BSP" : "pull in a mode");
        return barrier(); // nobody pushes again before all have looked
    }

    static constexpr uint64_t length = 700;

  private:
    uint32_t mode_ = DTRAIN_ASYNC;
    double pushed_ = 0;
};

} // namespace

bool change_consistency(const Here &here, int step, uint64_t random) {
    static constexpr uint32_t modes[] = {DTRAIN_ASYNC, DTRAIN_BSP, DTRAIN_SSP};
    ModesTable table(here);
    table.params.length = ModesTable::length;
    if (!table.make("modes", step) || !table.step()) return false;
    for (int i = 0; i < 2; i++, random /= 3)
        if (!table.change(modes[random % 3]) || !table.step()) return false;
    return table.destroy();
}

// One rank sets what the others wait for; a push then brings the values along.
bool set_and_exchange(const Here &here, int step, int chief) {
    constexpr uint64_t length = 900;
    StepTable table(here);
    table.params.length = length;
    table.params.rule = DTRAIN_RULE_MOMENTUM;
    table.params.learning_rate = 1;
    if (!table.make("sets", step)) return false;
    Data<double> data(length, 100);
    if (here.rank() == chief &&
        (!table.does("set", dtrain_table_set, 0, length, data.data()) ||
         !table.does("set of a rate", dtrain_table_set_rate, 1.0) ||
         !table.does("set of state", dtrain_table_set_state, 0, 0, length, data.data()) ||
         !table.does("declaring a table ready", dtrain_table_set_ready)))
        return false;
    if (!table.does("waiting for a table", dtrain_table_wait_ready)) return false;
    Data<double> values(length, -1);
    if (!table.does("pull of state", dtrain_table_pull_state, 0, 0, length, values.data()))
        return false;
    table.expect(values, 100, 100, "pull of state");
    if (!table.barrier()) return false; // nobody changes the state before all have looked
    // Each update takes the momentum, 90, 81, ..., from the values.
    const Data<double> zeros(length, 0);
    if (!table.does("push_pull", dtrain_table_push_pull, 0, length, zeros.data(), values.data()))
        return false;
    double momentum = 100, low = 100;
    for (size_t i = 0; i < here.caller.members.size(); i++) low -= momentum *= 0.9;
    table.expect(values, low - 1e-6, 10 + 1e-6, "push_pull");
    if (!table.barrier() || !table.does("pull", dtrain_table_pull, 0, length, values.data()))
        return false;
    table.expect(values, low - 1e-6, low + 1e-6, "pull of all updates");
    return table.destroy();
}

bool set_and_erase_rows(const Here &here, int step, int chief) {
    constexpr uint64_t width = 3, count = 200;
    StepTable table(here);
    table.params.dim = width;
    table.params.rule = DTRAIN_RULE_ADD;
    table.params.initial = 5;
    if (!table.make("erased", step)) return false;
    Data<uint64_t> keys(count);
    for (size_t i = 0; i < count; i++) keys[i] = ~i * 0x9E3779B97F4A7C15u;
    Data<double> values(count * width, 10);
    uint64_t rows = 0;
    if (here.rank() == chief &&
        (!table.does("set of rows", dtrain_table_set_rows, keys.data(), count, values.data()) ||
         !table.does("count of rows", dtrain_table_count_rows, &rows) ||
         !table.does("erasing rows", dtrain_table_erase_rows, keys.data(), count / 2)))
        return false;
    if (here.rank() == chief && rows != count)
        fail_life("process %d: there are %llu rows", here.caller.process,
                  static_cast<unsigned long long>(rows));
    if (!table.barrier()) return false;
    const Data<double> ones(count * width, 1);
    if (!table.does("push_pull of rows", dtrain_table_push_pull_rows, keys.data(), count,
                    ones.data(), values.data()))
        return false;
    const auto size = double(here.caller.members.size());
    table.expect(values, 6, 10 + size, "push_pull of rows");
    if (!table.barrier() ||
        !table.does("pull of rows", dtrain_table_pull_rows, keys.data(), count, values.data()))
        return false;
    const auto half = values.begin() + count / 2 * width;
    table.expect({values.begin(), half}, 5 + size, 5 + size, "pull of rows erased before");
    table.expect({half, values.end()}, 10 + size, 10 + size, "pull of rows");
    return table.destroy();
}

} // namespace dtrain::simulator
