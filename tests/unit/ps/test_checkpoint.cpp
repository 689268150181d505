// Checkpoints: what is in them, who can restore them, and what is left after a crash at every step.
// SPDX-License-Identifier: Apache-2.0
#include "checkpointed_table.h"

#include "check.h"
#include "faulty_disk.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

using namespace dtrain::ps;
using dtrain::data::system_disk;
namespace fs = std::filesystem;

namespace {

FaultyDisk quick_disk; // without faults: no test but the last ones waits for a real one

// What is restored is what was saved, and goes on like it, on any number of servers.
void any_number_of_servers(void **) {
    for (uint32_t before : {1, 2, 3})
        for (uint32_t after : {1, 2, 5}) {
            TemporaryFolder folder;
            Table table(adam(1003), before), other(adam(1003), after);
            table.push(0.5f, 0, 1003);
            table.push(-2, 100, 700);
            for (auto &shard : table.shards) shard->set_rate(0.25);
            assert_int_equal(save(table, folder.name, 7, quick_disk), DTRAIN_OK);
            other.push(9, 3, 500); // is replaced
            assert_int_equal(restore(other, folder.name, 7), DTRAIN_OK);
            assert_true(table.values() == other.values());
            for (Table *both : {&table, &other}) both->push(1, 50, 900);
            // Elsewhere in a shard a product and a sum may be rounded once or twice.
            const float most = before == after ? 0 : 1e-6f;
            const std::vector<float> expected = table.values(), got = other.values();
            for (size_t i = 0; i < got.size(); i++)
                assert_true(std::fabs(got[i] - expected[i]) <= most * std::fabs(expected[i]));
            for (auto &shard : other.shards)
                assert_int_equal(shard->updates(), table.shards[0]->updates());
        }
}

void fewer_elements_than_servers(void **) {
    TemporaryFolder folder;
    Table table(adam(2), 5), other(adam(2), 3);
    table.push(1, 0, 2);
    assert_int_equal(save(table, folder.name, 0, quick_disk), DTRAIN_OK);
    assert_int_equal(restore(other, folder.name, 0), DTRAIN_OK);
    assert_true(table.values() == other.values());
}

void every_rule_and_dtype(void **) {
    for (uint32_t rule : {DTRAIN_RULE_ADD, DTRAIN_RULE_MOMENTUM, DTRAIN_RULE_ADAGRAD_ROWS,
                          DTRAIN_RULE_LAMB, DTRAIN_RULE_FTRL, DTRAIN_RULE_AMSGRAD})
        for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64, DTRAIN_BF16}) {
            TemporaryFolder folder;
            TableParams params = adam(960);
            params.rule = rule;
            params.dtype = dtype;
            params.row_length = 32;
            Table table(params, 3), other(params, 2);
            std::vector<double> bytes(960, 0.125); // some numbers, whatever the type
            for (auto &shard : table.shards)
                assert_int_equal(shard->push(shard->part().range(0), bytes.data(), true),
                                 Reason::none);
            assert_int_equal(save(table, folder.name, 1, quick_disk), DTRAIN_OK);
            assert_int_equal(restore(other, folder.name, 1), DTRAIN_OK);
            auto before = Table(params, 1), after = Table(params, 1);
            assert_int_equal(save(other, folder.name, 2, quick_disk), DTRAIN_OK);
            assert_int_equal(restore(before, folder.name, 1), DTRAIN_OK);
            assert_int_equal(restore(after, folder.name, 2), DTRAIN_OK);
            auto one = before.shards[0]->image(), two = after.shards[0]->image();
            const auto arrays = one->arrays(), others = two->arrays();
            for (size_t i = 0; i < arrays.size(); i++)
                if (arrays[i].numbers != nullptr)
                    assert_memory_equal(arrays[i].numbers, others[i].numbers,
                                        960 / arrays[i].elements * arrays[i].size);
        }
}

void another_table_is_refused(void **) {
    TemporaryFolder folder;
    Table table(adam(64), 2);
    assert_int_equal(save(table, folder.name, 3, quick_disk), DTRAIN_OK);
    auto refuses = [&](const TableParams &params, dtrain::Status status, const char *says,
                       uint64_t step = 3) {
        Table other(params, 1);
        assert_int_equal(restore(other, folder.name, step), status);
        if (std::strstr(dtrain::error_text(), says) == nullptr)
            fail_msg("\"%s\" does not say \"%s\"", dtrain::error_text(), says);
    };
    TableParams params = adam(65);
    refuses(params, DTRAIN_ERR_MISMATCH, "had 64 elements and has 65 now");
    params = adam(64);
    params.rule = DTRAIN_RULE_ADAMW;
    refuses(params, DTRAIN_ERR_MISMATCH, "had the rule");
    params = adam(64);
    params.dtype = DTRAIN_F16;
    refuses(params, DTRAIN_ERR_MISMATCH, "its \"values\" are f32, the table's f16");
    refuses(adam(64), DTRAIN_ERR_NOT_FOUND, "no complete checkpoint", 4);

    CheckpointFolder names(folder.name, system_disk());
    const std::string first = names.shard_path(3, table_name, 0, 2);
    const std::string second = names.shard_path(3, table_name, 1, 2);
    fs::copy(second, first + ".kept");
    fs::copy_file(first, second, fs::copy_options::overwrite_existing);
    refuses(adam(64), DTRAIN_ERR_CORRUPT, "element 0 is in two of the files");
    fs::remove(second);
    refuses(adam(64), DTRAIN_ERR_CORRUPT, "a file is missing");
}

// Whichever byte of a file changes, it is found out, or (in the text of the index) changes nothing.
void damage_is_found(void **) {
    TemporaryFolder folder;
    Table table(adam(40), 1);
    table.push(1, 0, 40);
    assert_int_equal(save(table, folder.name, 3, quick_disk), DTRAIN_OK);
    CheckpointFolder names(folder.name, system_disk());
    const std::string path = names.shard_path(3, table_name, 0, 1);
    const auto size = fs::file_size(path);
    const std::vector<float> good = table.values();
    uint64_t found = 0;
    for (uint64_t at = 0; at < size; at++) {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(int64_t(at));
        const char was = char(file.get());
        file.seekp(int64_t(at));
        file.put(char(was ^ 1));
        file.close();
        Table other(adam(40), 1);
        dtrain::Status s = restore(other, folder.name, 3);
        found += s != DTRAIN_OK;
        if (s == DTRAIN_OK) assert_true(other.values() == good);
        std::fstream back(path, std::ios::in | std::ios::out | std::ios::binary);
        back.seekp(int64_t(at));
        back.put(was);
    }
    assert_true(found > size - 40); // all but digits of step, clock, updates, rate
}

void the_newest_are_kept(void **) {
    TemporaryFolder folder;
    Table table(adam(64), 2);
    CheckpointFolder names(folder.name, system_disk());
    uint64_t newest = 0;
    assert_int_equal(names.latest(newest), DTRAIN_ERR_NOT_FOUND);
    for (uint64_t step : {1, 5, 20, 100}) {
        assert_int_equal(names.begin(step - 1), DTRAIN_OK); // never completed
        assert_int_equal(save(table, folder.name, step, quick_disk, 2), DTRAIN_OK);
        assert_int_equal(names.latest(newest), DTRAIN_OK);
        assert_int_equal(newest, step);
    }
    Manifest manifest;
    assert_int_equal(names.read(100, manifest), DTRAIN_OK);
    assert_int_equal(names.read(20, manifest), DTRAIN_OK);
    assert_int_equal(names.read(5, manifest), DTRAIN_ERR_NOT_FOUND);
    assert_int_equal(std::distance(fs::directory_iterator(folder.name), {}), 2);
    assert_int_equal(save(table, folder.name, 20, quick_disk), DTRAIN_ERR_STATE);
    assert_int_equal(CheckpointFolder(folder.name + "/none", system_disk()).latest(newest),
                     DTRAIN_ERR_NOT_FOUND);
}

void a_bad_manifest_is_named(void **) {
    TemporaryFolder folder;
    Table table(adam(64), 1);
    assert_int_equal(save(table, folder.name, 3, quick_disk), DTRAIN_OK);
    const std::string path = folder.name + "/step-0000000003/manifest.json";
    for (
        const char *text :
        {"", "[]", "{}", "{\"format\":\"x\"}", R"({"format":"dtrain checkpoint 1","step":4})",
         R"({"format":"dtrain checkpoint 1","step":3})",
         R"({"format":"dtrain checkpoint 1","step":3,"tables":[1]})",
         R"({"format":"dtrain checkpoint 1","step":3,"tables":[{"name":"a","shards":0}]})",
         R"({"format":"dtrain checkpoint 1","step":3,"tables":[{"name":"a","shards":4294967297}]})"}) {
        std::ofstream(path) << text;
        Table other(adam(64), 1);
        assert_int_equal(restore(other, folder.name, 3), DTRAIN_ERR_CORRUPT);
        assert_non_null(std::strstr(dtrain::error_text(), "manifest.json"));
    }
}

// A second checkpoint fails, or ends with a crash, at each of its system calls: the first one
// stays, or the second is complete and right. What is there afterwards takes a third one. Returns
// what of that is not so, or "".
std::string at_every_step(FaultyDisk::Fault fault, bool names_too,
                          FaultyDisk::Omitted omitted = FaultyDisk::Omitted::none) {
    uint64_t newest = 0, steps = 0, completed = 0;
    for (bool more = true; more; steps++) {
        TemporaryFolder folder;
        Table table(adam(300), 2), first(adam(300), 3), second(adam(300), 1);
        FaultyDisk disk;
        disk.plant(omitted);
        table.push(1, 0, 300);
        assert_int_equal(save(table, folder.name, 1, disk, 1), DTRAIN_OK);
        const std::vector<float> before = table.values();
        table.push(1, 0, 300);
        disk.plan(fault, steps, ENOSPC);
        dtrain::Status saved = save(table, folder.name, 2, disk, 1);
        more = disk.calls() > steps;
        if (fault == FaultyDisk::Fault::crash) disk.lose_power(names_too);
        if (saved != DTRAIN_OK && fault == FaultyDisk::Fault::error)
            assert_int_equal(saved, DTRAIN_ERR_IO); // as dtrain.h says
        if (saved != DTRAIN_OK && fault == FaultyDisk::Fault::error)
            assert_non_null(std::strstr(dtrain::error_text(), "No space left on device"));

        CheckpointFolder names(folder.name, system_disk());
        if (names.latest(newest) != DTRAIN_OK) return "there is no checkpoint";
        Table restored(adam(300), 3);
        if (restore(restored, folder.name, newest) != DTRAIN_OK) return dtrain::error_text();
        if (restored.values() != (newest == 1 ? before : table.values())) return "other values";
        if (saved == DTRAIN_OK && newest != 2) return "what was saved is not there";
        completed += newest == 2;
        disk.plan(FaultyDisk::Fault::none, 0);
        if (newest == 1) assert_int_equal(save(table, folder.name, 2, disk, 1), DTRAIN_OK);
        assert_int_equal(save(table, folder.name, 3, disk, 1), DTRAIN_OK);
        assert_int_equal(std::distance(fs::directory_iterator(folder.name), {}), 1);
    }
    assert_true(steps > 20);
    assert_true(completed > 1 && completed < steps);
    return "";
}
void an_error_at_every_step(void **) {
    assert_string_equal(at_every_step(FaultyDisk::Fault::error, false).c_str(), "");
}
void a_crash_at_every_step(void **) {
    assert_string_equal(at_every_step(FaultyDisk::Fault::crash, false).c_str(), "");
    assert_string_equal(at_every_step(FaultyDisk::Fault::crash, true).c_str(), "");
}
void a_sync_that_is_missing_is_found(void **) {
    for (bool names_too : {false, true})
        assert_string_not_equal(
            at_every_step(FaultyDisk::Fault::crash, names_too, FaultyDisk::Omitted::sync).c_str(),
            "");
    assert_string_not_equal(
        at_every_step(FaultyDisk::Fault::crash, true, FaultyDisk::Omitted::sync_folder).c_str(),
        "");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_servers),
        cmocka_unit_test(fewer_elements_than_servers),
        cmocka_unit_test(every_rule_and_dtype),
        cmocka_unit_test(another_table_is_refused),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(a_bad_manifest_is_named),
        cmocka_unit_test(an_error_at_every_step),
        cmocka_unit_test(a_crash_at_every_step),
        cmocka_unit_test(a_sync_that_is_missing_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
