// Tables in a GPU's memory have the bits of tables in host memory: every rule, dtype and mode.
// SPDX-License-Identifier: Apache-2.0
#include "contract/rules.h"
#include "gpu/twins.h"

namespace {

using gpu::Numbers;
using gpu::table_params;
using gpu::Twins;
using gpu::with_device;

constexpr uint32_t floating[] = {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16, DTRAIN_BF16};
constexpr uint64_t row = 700; // more than a block of norms, and no multiple of it

// All that a table may have beside its rule.
struct Change {
    const char *name;
    void (*apply)(dtrain_table_params_t &params);
};
constexpr Change changes[] = {
    {"plain", [](dtrain_table_params_t &) {}},
    {"rows", [](dtrain_table_params_t &p) { p.row_length = row; }},
    {"adjusted",
     [](dtrain_table_params_t &p) {
         p.clip_value = 3;
         p.weight_decay = 0.01;
         p.l1 = 0.02;
         p.l2 = 0.03;
     }},
    {"clipped",
     [](dtrain_table_params_t &p) {
         p.row_length = row;
         p.clip_norm = 5;
         p.weight_decay = 0.01;
     }},
    {"counted",
     [](dtrain_table_params_t &p) {
         p.steps = DTRAIN_STEPS_TABLE;
         p.schedule = DTRAIN_SCHEDULE_COSINE;
         p.warmup_steps = 2;
         p.decay_steps = 5;
     }},
    {"initial",
     [](dtrain_table_params_t &p) {
         p.initial = 3;
         p.seed = 7;
     }},
    {"f16 stored", [](dtrain_table_params_t &p) { p.storage_dtype = DTRAIN_F16; }},
    {"bf16 stored", [](dtrain_table_params_t &p) { p.storage_dtype = DTRAIN_BF16; }},
    {"f32 stored", [](dtrain_table_params_t &p) { p.storage_dtype = DTRAIN_F32; }},
    {"i8 sent", [](dtrain_table_params_t &p) { p.wire_dtype = DTRAIN_I8; }},
    {"f16 sent", [](dtrain_table_params_t &p) { p.wire_dtype = DTRAIN_F16; }},
    {"segments",
     [](dtrain_table_params_t &p) {
         static thread_local dtrain_segment_t segments[7];
         const uint32_t rules[] = {DTRAIN_RULE_ADAM, p.rule,          DTRAIN_RULE_ADD,
                                   DTRAIN_RULE_LAMB, DTRAIN_RULE_MIN, DTRAIN_RULE_ASSIGN,
                                   DTRAIN_RULE_MAX};
         for (uint32_t i = 0; i < std::size(segments); i++) {
             DTRAIN_INIT(&segments[i]);
             segments[i].first = i * (row / 7);
             segments[i].count = row / 7;
             segments[i].rule = rules[i];
         }
         p.row_length = row;
         p.rule = 0;
         p.segments = segments;
         p.segment_count = std::size(segments);
     }},
};

struct Mode {
    const char *name;
    uint32_t consistency, aggregate, reproducible;
};
constexpr Mode modes[] = {{"ASYNC", DTRAIN_ASYNC, DTRAIN_SUM, 0},
                          {"BSP", DTRAIN_BSP, DTRAIN_AVG, 1},
                          {"sums", DTRAIN_BSP, DTRAIN_SUM, 0}};

// Whole rows, or anything, within the table.
std::pair<uint64_t, uint64_t> range(Numbers &numbers, uint64_t length, uint64_t unit, bool all) {
    const uint64_t units = length / unit, first = all ? 0 : numbers.below(units);
    return {first * unit, (all ? units : 1 + numbers.below(units - first)) * unit};
}

// Where sums, or updates, depend on the order of pushes, the first worker alone makes them.
void run_steps(int rank, dtrain_comm_t *comm, const Twins &twins,
               const dtrain_table_params_t &params, uint64_t unit) {
    Numbers numbers(params.rule * 100 + params.dtype + uint32_t(rank));
    const bool bsp = params.consistency == DTRAIN_BSP;
    for (int step = 0; step < 4; step++) {
        const int pushes = params.reproducible != 0 || rank == 0 ? 2 : 0;
        for (int push = 0; push < pushes; push++) {
            const auto [first, count] = range(numbers, params.length, unit, step == 0);
            twins.push(first, count, numbers.of(params.dtype, count).data());
        }
        if (bsp)
            twins.both(
                [](dtrain_table_t *table) { return dtrain_table_clock(table, nullptr, nullptr); });
        OK(dtrain_barrier(comm, nullptr, nullptr));
        twins.same_values();
        OK(dtrain_barrier(comm, nullptr, nullptr)); // nobody is a clock ahead
    }
    twins.same_state();
}

// Returns whether there is such a table.
bool check(dtrain_comm_t *comm, int rank, uint32_t rule, uint32_t dtype, const Change &change,
           const Mode &mode) {
    dtrain_table_params_t params = table_params(rule, dtype, 20 * row);
    change.apply(params);
    params.consistency = mode.consistency;
    params.aggregate = mode.aggregate;
    params.reproducible = mode.reproducible;
    dtrain_table_t *table = nullptr; // what host memory refuses, is no case
    if (dtrain_table_create(comm, "probe", &params, &table) != DTRAIN_OK) return false;
    OK(dtrain_table_destroy(table));
    const Twins twins(comm, params);
    const bool rows = params.row_length > 0 || rule == DTRAIN_RULE_LARS ||
                      rule == DTRAIN_RULE_LAMB || rule == DTRAIN_RULE_ADAGRAD_ROWS;
    run_steps(rank, comm, twins, params, params.row_length > 0 ? row : rows ? params.length : 1);
    return true;
}

void every_rule(void **) {
    ranks::run(2, 2, with_device, [](int rank, dtrain_comm_t *comm) {
        int cases = 0;
        for (const uint32_t rule : common_rules)
            for (const uint32_t dtype : floating)
                for (const Change &change : changes)
                    for (const Mode &mode : modes)
                        cases += check(comm, rank, rule, dtype, change, mode);
        if (rank == 0) std::printf("%d tables\n", cases);
        REQUIRE(cases > 1000);
    });
}

void integers(void **) {
    ranks::run(2, 1, with_device, [](int rank, dtrain_comm_t *comm) {
        for (uint32_t dtype = DTRAIN_I8; dtype <= DTRAIN_U64; dtype++)
            for (const uint32_t rule :
                 {DTRAIN_RULE_ADD, DTRAIN_RULE_ASSIGN, DTRAIN_RULE_MIN, DTRAIN_RULE_MAX})
                for (const Mode &mode : modes) check(comm, rank, rule, dtype, changes[0], mode);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(every_rule), cmocka_unit_test(integers)};
    return cmocka_run_group_tests_name("tables in a GPU's memory", tests, nullptr, nullptr);
}
