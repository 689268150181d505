// Checkpoints of tables whose parts are many ranges, restored onto other placements.
// SPDX-License-Identifier: Apache-2.0
#include "checkpointed_table.h"

#include "check.h"
#include "faulty_disk.h"

#include <cstring>
#include <fstream>

using namespace dtrain::ps;

namespace {

FaultyDisk disk; // without faults

TableParams placed(TableParams params, uint32_t policy, uint64_t block, uint32_t servers) {
    Placement &placement = params.placement;
    placement.policy = policy;
    placement.block = block;
    if (policy == DTRAIN_PLACE_CONSISTENT) placement.virtual_nodes = 8;
    if (policy == DTRAIN_PLACE_GREEDY) placement.home = servers;
    if (policy == DTRAIN_PLACE_USER)
        for (uint64_t b = 0; b < blocks_of(params).count; b++)
            placement.owners.push_back(uint16_t(b * b % servers));
    assert_null(bad_placement(params));
    assert_true(fits_servers(params, servers));
    return params;
}

// Values, state, and counts of each element or row are where they were in the table.
void assert_same(const Table &a, const Table &b) {
    auto numbers = [](const Table &table, uint64_t array, uint64_t first, uint64_t count) {
        for (const auto &shard : table.shards) {
            if (!shard->part().contains({first, count})) continue;
            if (array == 0) { // as f32, however they are stored
                auto sent = shard->as_sent({first, count});
                return std::string(sent->at(0), count * sizeof(float));
            }
            const StateArray its = state_arrays(table.params)[array - 1];
            const auto state = shard->state(array - 1, {first, count});
            return std::string(static_cast<const char *>(state.numbers), its.bytes_of(count));
        }
        fail_msg("element %llu is nowhere", static_cast<unsigned long long>(first));
        return std::string();
    };
    const uint64_t step = std::max<uint64_t>(a.params.row_length, 1);
    for (uint64_t array = 0; array <= state_arrays(a.params).size(); array++)
        for (uint64_t first = 0; first < a.params.length; first += step)
            assert_true(numbers(a, array, first, step) == numbers(b, array, first, step));
}

void onto_any_other_placement(void **) {
    TableParams rows = adam(960);
    rows.rule = DTRAIN_RULE_LAMB;
    rows.row_length = 32;
    const std::pair<uint32_t, uint64_t> placements[] = {{DTRAIN_PLACE_RANGE, 0},
                                                        {DTRAIN_PLACE_HASH, 64},
                                                        {DTRAIN_PLACE_CONSISTENT, 32},
                                                        {DTRAIN_PLACE_GREEDY, 0},
                                                        {DTRAIN_PLACE_USER, 96}};
    TableParams narrow = adam(2000); // blocks of 128 with a scale, of which the last has fewer
    narrow.storage_dtype = DTRAIN_I8;
    for (const TableParams &params : {adam(1003), rows, narrow})
        for (auto [policy, block] : placements) {
            const bool narrows = params.storage_dtype == DTRAIN_I8;
            if (narrows) block *= 4;
            for (auto [before, after] : {std::pair{3u, 2u}, {2u, 5u}, {1u, 4u}}) {
                TemporaryFolder one, two;
                Table table(placed(params, policy, block, before), before);
                const uint64_t other_block = narrows ? 128 : 32;
                Table other(placed(params, DTRAIN_PLACE_USER, other_block, after), after);
                Table back(params, 2);
                table.push(0.5f, 0, params.length, 1);
                table.push(-2, 96, 704, 1);
                assert_int_equal(save(table, one.name, 1, disk), DTRAIN_OK);
                assert_int_equal(restore(other, one.name, 1), DTRAIN_OK);
                assert_same(table, other);
                assert_int_equal(save(other, two.name, 1, disk), DTRAIN_OK);
                assert_int_equal(restore(back, two.name, 1), DTRAIN_OK);
                assert_same(table, back);
            }
        }
}

void ranges_in_a_file_may_be_wrong(void **) {
    TemporaryFolder folder;
    const Table table(placed(adam(64), DTRAIN_PLACE_USER, 16, 2), 2);
    assert_int_equal(save(table, folder.name, 1, disk), DTRAIN_OK);
    CheckpointFolder names(folder.name, disk);
    const std::string path = names.shard_path(1, table_name, 1, 2);
    std::ifstream in(path, std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::string listed = "16+16,48+16";
    assert_true(good.find(listed) != std::string::npos);
    for (const char *wrong : {"16+16,49+16", "16+16,16+16", "48+16,16+16", "16+16,48-16",
                              "16+16,48+00", "16+16,48+99", "           ", "16+16,,48+1"}) {
        std::string bad = good;
        bad.replace(bad.find(listed), listed.size(), wrong);
        std::ofstream(path, std::ios::binary) << bad;
        seal_again(names, 1);
        Table other(adam(64), 1);
        const dtrain::Status status = restore(other, folder.name, 1);
        if (status != DTRAIN_ERR_CORRUPT) fail_msg("\"%s\": %d", wrong, status);
    }
    std::ofstream(path, std::ios::binary) << good;
    seal_again(names, 1);
    Table other(adam(64), 1);
    assert_int_equal(restore(other, folder.name, 1), DTRAIN_OK);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(onto_any_other_placement),
        cmocka_unit_test(ranges_in_a_file_may_be_wrong),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
