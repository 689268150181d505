// dtrain.hpp: tables with servers and without, rules of one's own, checkpoints.
// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"
#include "temporary_folder.h"

using namespace dtrain;
using namespace std::chrono_literals;

namespace {

void dense(const Communicator &comm) {
    const Table table = comm.table("dense", TableParams()
                                                .length(6)
                                                .rule(Rule::SGD)
                                                .learning_rate(0.5)
                                                .consistency(Consistency::BSP)
                                                .initial(1));
    std::vector<float> w(6), g(6, 1);
    table.push(g);
    table.clock();
    const Result result = table.pull(w);
    REQUIRE(w[0] == 0 && w[5] == 0 && result.version == 1);
    table.with(OpParams().timeout(20s)).push_pull(g, w);
    REQUIRE(w[3] == -1);
    Request request = table.start().pull(Span<float>(w).subspan(2, 2), 2);
    REQUIRE(request.wait().bytes == 8);
    std::vector<double> wrong(6);
    THROWS(InvalidError, "the table is of f32, the array of f64", table.push(wrong));
    REQUIRE(table.locate(std::vector<uint64_t>{0, 5}).size() == 2);
    REQUIRE(!table.servers().empty() && table.stats().requests > 0);
    REQUIRE(!table.restored() && table.states().empty());
}

void test_without_servers(void **) {
    run(2, 0, [](const Context &, const Communicator &comm) { dense(comm); });
}
void test_with_a_server(void **) {
    run(2, 1, [](const Context &, const Communicator &comm) { dense(comm); });
}

void test_rows(void **) {
    run(1, 1, [](const Context &, const Communicator &comm) {
        const Table table =
            comm.table("rows", TableParams().dim(2).rule(Rule::MOMENTUM).momentum(0.5));
        const std::vector<uint64_t> keys{7, UINT64_MAX};
        std::vector<float> rows{1, 2, 3, 4}, got(4);
        table.set_rows(keys, rows);
        table.pull_rows(keys, got);
        REQUIRE(got == rows);
        table.push_pull_rows(keys, rows, got);
        REQUIRE(got[3] < 4);
        uint64_t count = 0;
        table.count_rows(count);
        REQUIRE(count == 2);
        const std::vector<State> states = table.states();
        REQUIRE(states.size() == 1 && states[0].name == "momentum" &&
                states[0].dtype == DType::F32);
        table.erase_rows(Span<const uint64_t>(keys).subspan(0, 1));
        table.count_rows(count);
        REQUIRE(count == 1);
        THROWS(InvalidError, "2 rows are 4 elements, not 3",
               table.push_rows(keys, Input(rows.data(), 3)));
    });
}

// A zero that is given is one, not the default.
void test_numbers_that_are_given(void **) {
    run(1, 0, [](const Context &, const Communicator &comm) {
        const Table table =
            comm.table("still", TableParams().length(2).rule(Rule::SGD).learning_rate(0));
        std::vector<float> g{1, 1}, w(2);
        table.push_pull(g, w);
        REQUIRE(w[0] == 0);
        const Table parts =
            comm.table("parts", TableParams()
                                    .length(4)
                                    .row_length(2)
                                    .segment(Segment(0, 1).rule(Rule::SGD).learning_rate(1))
                                    .segment(Segment(1, 1).rule(Rule::SGD).learning_rate(0)));
        std::vector<float> gradients(4, 1), values(4);
        parts.push_pull(gradients, values);
        REQUIRE(values[0] == -1 && values[1] == 0);
    });
}

TableParams decaying() {
    return TableParams()
        .length(2)
        .rule(Rule::ADAM)
        .steps(Steps::TABLE)
        .schedule(Schedule::COSINE)
        .warmup_steps(3)
        .decay_steps(9)
        .decay(0.25);
}
TableParams averaged(MeanOver over) {
    return TableParams()
        .dim(2)
        .consistency(Consistency::BSP)
        .aggregate(Op::AVG)
        .not_finite(NotFinite::REFUSE)
        .mean_over(over);
}
TableParams begun(double accumulator) {
    return TableParams().length(2).rule(Rule::ADAGRAD).accumulator(accumulator);
}
TableParams part(double accumulator) {
    return TableParams().dim(2).segment(Segment(0, 2).rule(Rule::FTRL).accumulator(accumulator));
}

// What is valid makes a table, what ranks give differently is told, and what is not is refused.
void test_numbers_arrive(void **) {
    struct {
        TableParams params, other;
        const char *name;
    } const cases[] = {
        {decaying(), decaying().steps(Steps::OWN), "steps"},
        {decaying(), decaying().schedule(Schedule::LINEAR), "schedule"},
        {decaying(), decaying().warmup_steps(4), "warmup_steps"},
        {decaying(), decaying().decay_steps(10), "decay_steps"},
        {decaying(), decaying().decay(0), "decay"},
        {averaged(MeanOver::PUSHERS), averaged(MeanOver::WORKERS), "mean_over"},
        {averaged(MeanOver::PUSHERS), averaged(MeanOver::PUSHERS).not_finite(NotFinite::DROP),
         "not_finite"},
        {begun(0.5), begun(0.5).memory(TableMemory::CUDA), "memory"},
        {begun(0.5), begun(0), "accumulator"},
        {part(0.5), part(0), "segment 0 accumulator"},
    };
    run(2, 0, [&](const Context &, const Communicator &comm) {
        for (const auto &one : cases) {
            comm.table("numbers", one.params);
            const TableParams &own = comm.rank() == 0 ? one.params : one.other;
            THROWS(MismatchError, one.name, comm.table("numbers", own));
        }
        TableParams sgd = TableParams().length(2).rule(Rule::SGD);
        THROWS(InvalidError, "decay_steps is not valid",
               comm.table("refused", TableParams(sgd).schedule(Schedule::COSINE)));
        THROWS(InvalidError, "steps is not valid",
               comm.table("refused", TableParams(sgd).steps(Steps::TABLE)));
        THROWS(InvalidError, "accumulator is given",
               comm.table("refused", TableParams(sgd).accumulator(0)));
    });
}

void test_state(void **) {
    run(1, 0, [](const Context &, const Communicator &comm) {
        const Table table =
            comm.table("dense", TableParams().length(4).rule(Rule::MOMENTUM).learning_rate(1));
        std::vector<float> momentum{5, 6}, got(3);
        table.set_state(0, momentum, 1);
        table.pull_state(0, got);
        REQUIRE((got == std::vector<float>{0, 5, 6}));
        std::vector<double> wrong(2);
        THROWS(InvalidError, "pull_state: the momentum is of f32, the array of f64",
               table.pull_state(0, wrong));
        THROWS(InvalidError, "set_state: the momentum is of f32", table.set_state(0, wrong));
        THROWS(NotFoundError, "", table.pull_state(1, got));

        const Table rows = comm.table("rows", TableParams().dim(2).rule(Rule::ADAM));
        const std::vector<uint64_t> keys{7, 9};
        std::vector<float> gradients{1, 2, 3, 4}, moments{8, 7, 6, 5}, found(4);
        rows.push_rows(keys, gradients);
        const uint32_t steps = rows.states().back().index;
        std::vector<uint64_t> counts(2);
        rows.pull_state_rows(steps, keys, counts);
        REQUIRE(counts[0] == 1 && counts[1] == 1);
        rows.set_state_rows(0, keys, moments);
        rows.start().pull_state_rows(0, keys, found).wait();
        REQUIRE(found == moments);
        THROWS(InvalidError, "pull_state_rows: the steps is of u64, the array of f32",
               rows.pull_state_rows(steps, keys, found));
        THROWS(InvalidError, "set_state_rows: 2 rows are 4 elements, not 3",
               rows.set_state_rows(0, keys, Input(moments.data(), 3)));
    });
}

void test_change_of_consistency(void **) {
    run(2, 0, [](const Context &, const Communicator &comm) {
        const Table table = comm.table("mode", TableParams().length(1));
        table.set_consistency(comm, TableParams().consistency(Consistency::BSP));
        std::vector<float> x{1};
        table.push(x);
        table.clock();
        table.pull(x);
        REQUIRE(x[0] == 2); // of both: an asynchronous table might not have the other's yet
        THROWS(
            InvalidError, "quorum",
            table.set_consistency(comm, TableParams().consistency(Consistency::QUORUM).quorum(3)));
        comm.barrier();
    });
}

void test_weights(void **) {
    const std::vector<uint32_t> weights = server_weights(4, 2, 2);
    REQUIRE(weights.size() == 4 && weights[0] == weights[1] && weights[0] > weights[3]);
    THROWS(InvalidError, "", server_weights(2, 0, 3));
}

void test_function(void **) {
    run(1, 0, [](const Context &context, const Communicator &comm) {
        context.register_function(Function("twice", [](const dtrain_function_batch_t &batch) {
            for (uint64_t r = 0; r < batch.count; r++)
                for (uint64_t i = 0; i < batch.dim; i++) {
                    const float g = static_cast<const float *>(batch.rows[r].pushed)[i];
                    if (g < 0) throw std::out_of_range("a negative gradient");
                    static_cast<float *>(batch.rows[r].values)[i] += 2 * g;
                }
        }));
        const Table table = comm.table("own", TableParams().length(3).function("twice"));
        std::vector<float> g{1, 2, 3}, w(3);
        table.push_pull(g, w);
        REQUIRE(w[2] == 6);
        g[1] = -1;
        THROWS(InvalidError, "a negative gradient", table.push(g));
    });
}

void test_checkpoint(void **) {
    const TemporaryFolder folder;
    const Context context(test_options().set("checkpoint.directory", folder.name));
    const Communicator comm = context.join("env", JoinParams().size(1));
    const Table table = comm.table("kept", TableParams().length(2));
    std::vector<float> w{1, 2};
    REQUIRE(!table.newest_checkpoint());
    table.set(w);
    REQUIRE(save_checkpoint({table}, 5));
    w = {8, 9};
    table.set(w);
    REQUIRE(restore_checkpoint({table}) == 5 && table.newest_checkpoint() == 5u);
    table.pull(w);
    REQUIRE(w[1] == 2);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(test_without_servers),
                                cmocka_unit_test(test_with_a_server),
                                cmocka_unit_test(test_rows),
                                cmocka_unit_test(test_numbers_that_are_given),
                                cmocka_unit_test(test_numbers_arrive),
                                cmocka_unit_test(test_state),
                                cmocka_unit_test(test_change_of_consistency),
                                cmocka_unit_test(test_weights),
                                cmocka_unit_test(test_function),
                                cmocka_unit_test(test_checkpoint)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
