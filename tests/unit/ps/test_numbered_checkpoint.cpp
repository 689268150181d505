// Checkpoints of tables whose rules and rates go by the table's count of updates, or whose state
// does not begin with 0.
// SPDX-License-Identifier: Apache-2.0
#include "checkpointed_table.h"

#include "check.h"
#include "faulty_disk.h"

using namespace dtrain::ps;

namespace {

FaultyDisk disk; // without faults

TableParams numbered() {
    TableParams params = adam(64);
    params.steps = DTRAIN_STEPS_TABLE;
    params.schedule = DTRAIN_SCHEDULE_COSINE;
    params.warmup_steps = 2;
    params.decay_steps = 9;
    params.decay = 0.25;
    return params;
}

TableParams accumulating() {
    TableParams params = adam(64);
    params.rule = DTRAIN_RULE_FTRL;
    params.accumulator = 0.1;
    return params;
}

// Onto as many servers, and others: what all of them have counted alike.
void it_goes_on_at_the_same_update(void **) {
    for (const TableParams &params : {numbered(), accumulating()})
        for (uint32_t before : {0, 1, 5})
            for (auto [from, to] : {std::pair{2u, 2u}, {3u, 2u}, {1u, 4u}}) {
                TemporaryFolder folder;
                Table table(params, from), other(params, to);
                for (uint32_t i = 0; i < before; ++i) table.push(float(i), 0, 64, 1);
                other.push(7, 0, 64, 1); // is replaced
                for (auto &shard : table.shards) shard->set_rate(0.5);
                assert_int_equal(save(table, folder.name, 1, disk), DTRAIN_OK);
                assert_int_equal(restore(other, folder.name, 1), DTRAIN_OK);
                for (auto &shard : other.shards) assert_int_equal(shard->updates(), before);
                for (uint32_t i = 0; i < 12; ++i) {
                    for (Table *both : {&table, &other}) both->push(0.5f, 0, 64, 0.25f);
                    assert_true(table.values() == other.values());
                }
            }
}

// Servers that have counted otherwise: the lowest count, so that no update of the schedule is left
// out.
void the_lowest_count_goes_on(void **) {
    TemporaryFolder folder;
    Table table(numbered(), 2), other(numbered(), 3);
    for (uint32_t i = 0; i < 5; ++i) table.push(1, 0, i < 3 ? 64 : 32);
    assert_int_equal(save(table, folder.name, 1, disk), DTRAIN_OK);
    assert_int_equal(restore(other, folder.name, 1), DTRAIN_OK);
    assert_int_equal(other.shards[0]->updates(), 5); // all of it was the first one's
    assert_int_equal(other.shards[1]->updates(), 3);
    assert_int_equal(other.shards[2]->updates(), 3);
}

void refuses(const TableParams &then, const TableParams &now, const char *says) {
    TemporaryFolder folder;
    assert_int_equal(save(Table(then, 1), folder.name, 1, disk), DTRAIN_OK);
    Table other(now, 1);
    assert_int_equal(restore(other, folder.name, 1), DTRAIN_ERR_MISMATCH);
    if (std::strstr(dtrain::error_text(), says) == nullptr)
        fail_msg("\"%s\" does not say \"%s\"", dtrain::error_text(), says);
}

// Also where one of both has what is usual, of which files say nothing.
void what_differs_is_named(void **) {
    TableParams plain = numbered();
    plain.steps = DTRAIN_STEPS_OWN;
    refuses(numbered(), plain, "made with steps 2 and has 1 now");
    refuses(plain, numbered(), "made with steps 1 and has 2 now");
    plain = accumulating();
    plain.accumulator = 0;
    refuses(accumulating(), plain, "made with accumulator 0.1 and has 0 now");
    refuses(plain, accumulating(), "made with accumulator 0 and has 0.1 now");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_at_the_same_update),
        cmocka_unit_test(the_lowest_count_goes_on),
        cmocka_unit_test(what_differs_is_named),
    };
    return cmocka_run_group_tests_name("numbered_checkpoint", tests, nullptr, nullptr);
}
