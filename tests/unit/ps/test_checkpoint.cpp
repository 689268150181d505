// Checkpoints: what is in them, who can restore them, and what is left after a crash at every step.
// SPDX-License-Identifier: Apache-2.0
#include "checkpointed_table.h"

#include "ps/checkpoint/lineage.h"

#include "check.h"
#include "complete.h"
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
    for (uint32_t rule : builtin_rules())
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
            auto one = complete(before.shards[0]->image()),
                 two = complete(after.shards[0]->image());
            const auto arrays = one->arrays(), others = two->arrays();
            for (size_t i = 0; i < arrays.size(); i++)
                if (arrays[i].numbers != nullptr)
                    assert_memory_equal(arrays[i].numbers, others[i].numbers,
                                        960 / arrays[i].elements * arrays[i].size);
        }
}

// Values that are rounded at random, in two bytes, and a master copy of them, in four.
void tables_of_16_bits(void **) {
    for (uint32_t storage : {uint32_t{0}, uint32_t{DTRAIN_F32}}) {
        TemporaryFolder folder;
        TableParams params = adam(960);
        params.dtype = DTRAIN_BF16;
        params.storage_dtype = storage;
        params.seed = 5;
        Table table(params, 3), other(params, 2);
        const std::vector<float> g(960, 0.125);
        for (auto &shard : table.shards)
            assert_int_equal(shard->push(shard->part().range(0), g.data(), true), Reason::none);
        assert_int_equal(save(table, folder.name, 1, quick_disk), DTRAIN_OK);
        assert_int_equal(restore(other, folder.name, 1), DTRAIN_OK);
        const uint64_t size = storage == 0 ? 2 : 4;
        for (auto &one : table.shards)
            for (auto &two : other.shards)
                for (uint64_t i = 0; i < 960; i++)
                    if (one->part().contains({i, 1}) && two->part().contains({i, 1}))
                        assert_memory_equal(one->at(i), two->at(i), size);
        params.seed = 6;
        Table seeded(params, 1);
        const dtrain::Status status = restore(seeded, folder.name, 1);
        assert_int_equal(status, storage == 0 ? DTRAIN_ERR_MISMATCH : DTRAIN_OK);
        if (storage == 0)
            assert_non_null(std::strstr(dtrain::error_text(), "made with seed 5 and has 6 now"));
        params.storage_dtype = storage == 0 ? uint32_t{DTRAIN_F32} : 0;
        Table stored(params, 1);
        assert_int_equal(restore(stored, folder.name, 1), DTRAIN_ERR_MISMATCH);
        assert_non_null(std::strstr(dtrain::error_text(), "its \"values\" are "));
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
    params.beta2 = 0.99;
    refuses(params, DTRAIN_ERR_MISMATCH, "made with beta2 0.999 and has 0.99 now");
    params = adam(64);
    params.learning_rate = 1; // what may be given anew
    params.clip_value = params.clip_norm = params.weight_decay = params.l1 = params.l2 = 0.5;
    params.initial = 3;
    params.row_length = 64;
    Table changed(params, 1);
    assert_int_equal(restore(changed, folder.name, 3), DTRAIN_OK);
    params = adam(64);
    params.dtype = DTRAIN_F16;
    refuses(params, DTRAIN_ERR_MISMATCH, "its \"values\" are f32, the table's f16");
    refuses(adam(64), DTRAIN_ERR_NOT_FOUND, "no complete checkpoint", 4);

    CheckpointFolder names(folder.name, system_disk());
    const std::string first = names.shard_path(3, table_name, 0, 2);
    const std::string second = names.shard_path(3, table_name, 1, 2);
    fs::copy(second, first + ".kept");
    fs::copy_file(first, second, fs::copy_options::overwrite_existing);
    refuses(adam(64), DTRAIN_ERR_CORRUPT, "a file of another checkpoint");
    seal_again(names, 3);
    refuses(adam(64), DTRAIN_ERR_CORRUPT, "element 0 is in two of the files");
    fs::remove(second);
    refuses(adam(64), DTRAIN_ERR_CORRUPT, "a file is missing");
}

// Whatever bit of a file changes.
void damage_is_found(void **) {
    TemporaryFolder folder;
    Table table(adam(20), 1);
    table.push(1, 0, 20);
    assert_int_equal(save(table, folder.name, 3, quick_disk), DTRAIN_OK);
    damage_every_bit(folder.name + "/step-0000000003", [&] {
        Table other(adam(20), 1);
        return restore(other, folder.name, 3);
    });
}

// As a whole each of them is fine.
void a_part_of_another_checkpoint_is_refused(void **) {
    TemporaryFolder folder;
    Table table(adam(64), 1), other(adam(64), 1);
    for (uint64_t step : {3, 4}) {
        table.push(1, 0, 64);
        assert_int_equal(save(table, folder.name, step, quick_disk), DTRAIN_OK);
    }
    CheckpointFolder names(folder.name, quick_disk);
    const std::string from = names.shard_path(3, table_name, 0, 1),
                      to = names.shard_path(4, table_name, 0, 1);
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
    assert_refused(to, [&] { return restore(other, folder.name, 4); });
    seal_again(names, 4); // were it not for its checksum
    assert_refused(to, [&] { return restore(other, folder.name, 4); });
    assert_non_null(std::strstr(dtrain::error_text(), "of step 3, not"));
    // Nor is it taken for one that was saved.
    Manifest manifest = next_manifest(4);
    assert_int_equal(add_parts(names, manifest, table_name, 1, table.params), DTRAIN_ERR_MISMATCH);
}

// Nothing that a heading has is left out without being missed.
void every_key_is_required(void **) {
    TemporaryFolder folder;
    const Table table(adam(64), 1);
    assert_int_equal(save(table, folder.name, 3, quick_disk), DTRAIN_OK);
    CheckpointFolder names(folder.name, quick_disk);
    const std::string path = names.shard_path(3, table_name, 0, 1), good = content_of(path);
    const size_t begin = good.find("{\"__metadata__\":{") + 17, end = good.find('}', begin);
    uint64_t keys = 0;
    for (size_t at = begin; at < end; keys++) {
        std::string bad = good;
        assert_int_equal(bad[at], '"');
        bad[at + 1] = '~'; // instead of its first letter
        std::ofstream(path, std::ios::binary) << bad;
        seal_again(names, 3);
        assert_refused(path, [&] {
            Table other(adam(64), 1);
            return restore(other, folder.name, 3);
        });
        at = good.find(',', at);
        at = at == std::string::npos ? end : at + 1;
    }
    assert_true(keys >= 19);
}

void what_is_not_seen_is_not_saved(void **) {
    TemporaryFolder here, there;
    const Table table(adam(64), 2);
    assert_int_equal(save(table, there.name, 3, quick_disk), DTRAIN_OK);
    Manifest written, manifest = {.step = 3};
    CheckpointFolder seen(here.name, quick_disk), unseen(there.name, quick_disk);
    assert_int_equal(unseen.read(3, written), DTRAIN_OK);
    manifest.id = written.id;
    const auto look = [&](CheckpointFolder &folder) {
        manifest.tables.clear();
        return add_parts(folder, manifest, table_name, 2, table.params);
    };
    assert_int_equal(look(seen), DTRAIN_ERR_CONFIG);
    assert_non_null(std::strstr(dtrain::error_text(), "one shared folder"));
    assert_int_equal(look(unseen), DTRAIN_OK);
    fs::resize_file(unseen.shard_path(3, table_name, 1, 2), 700);
    assert_int_equal(look(unseen), DTRAIN_ERR_CORRUPT);
    // The worker sees what the server does not.
    ArchiveJob job = job_for(RequestKind::restore, table, 0, written);
    job.image = std::make_unique<ShardImage>(table.params, table.shards[0]->part());
    run(job, seen, quick_disk);
    assert_int_equal(job.status, DTRAIN_ERR_CONFIG);
}

// The step of what was saved last, or UINT64_MAX.
uint64_t newest_in(const std::string &path) {
    std::vector<Manifest> all;
    const Manifest *found = nullptr;
    const std::string name = table_name;
    if (CheckpointFolder(path, system_disk()).list(all) != DTRAIN_OK) return UINT64_MAX;
    return Lineage().newest(all, {&name, 1}, found) == DTRAIN_OK ? found->step : UINT64_MAX;
}

void the_newest_are_kept(void **) {
    TemporaryFolder folder;
    Table table(adam(64), 2);
    CheckpointFolder names(folder.name, system_disk());
    assert_true(newest_in(folder.name) == UINT64_MAX);
    assert_true(newest_in(folder.name + "/none") == UINT64_MAX);
    for (uint64_t step : {1, 5, 20, 100}) {
        assert_int_equal(names.begin(step - 1, 0xabc), DTRAIN_OK); // never completed
        assert_int_equal(save(table, folder.name, step, quick_disk, 2), DTRAIN_OK);
        assert_int_equal(newest_in(folder.name), step);
    }
    Manifest manifest;
    assert_int_equal(names.read(100, manifest), DTRAIN_OK);
    assert_int_equal(names.read(20, manifest), DTRAIN_OK);
    assert_int_equal(names.read(5, manifest), DTRAIN_ERR_NOT_FOUND);
    assert_int_equal(std::distance(fs::directory_iterator(folder.name), {}), 2);
    assert_int_equal(save(table, folder.name, 20, quick_disk), DTRAIN_ERR_STATE);
}

// The folder is there, in one that this user may not read; a folder that was just created is
// synced.
void a_parent_that_cannot_be_read(void **) {
    TemporaryFolder parent;
    FaultyDisk disk;
    CheckpointFolder names(parent.file("checkpoints"), disk);
    constexpr uint64_t sync_of_parent = 1;
    disk.plan(FaultyDisk::Fault::error, sync_of_parent, EACCES);
    assert_int_not_equal(names.begin(3, 0xabc), DTRAIN_OK);
    assert_non_null(std::strstr(dtrain::error_text(), "cannot sync the folder"));
    disk.plan(FaultyDisk::Fault::error, sync_of_parent, EACCES);
    assert_int_equal(names.begin(3, 0xabc), DTRAIN_OK);
    disk.plan(FaultyDisk::Fault::error, sync_of_parent, EIO);
    assert_int_equal(names.begin(3, 0xabc), DTRAIN_ERR_IO);
}

// What another job has begun may be under way.
// A worker was lost when it had ended a clock for one of them only.
void servers_at_different_clocks(void **) {
    TemporaryFolder folder;
    for (uint64_t difference : {0, 1}) {
        TableParams params = adam(64);
        params.consistency = DTRAIN_BSP;
        const Table table(params, 2);
        Manifest manifest = next_manifest(3);
        CheckpointFolder names(folder.name, quick_disk);
        assert_int_equal(names.begin(3, manifest.lineage), DTRAIN_OK);
        for (uint32_t server : {0, 1}) {
            ArchiveJob job = job_for(RequestKind::save, table, server, manifest);
            job.image = table.shards[server]->image();
            job.image->clock = 5 + server * difference;
            run(job, names, quick_disk);
            assert_int_equal(job.status, DTRAIN_OK);
        }
        assert_int_equal(add_parts(names, manifest, table_name, 2, params),
                         difference == 0 ? DTRAIN_OK : DTRAIN_ERR_PEER);
    }
    assert_non_null(std::strstr(dtrain::error_text(), "clock 5 had ended on server 1 but not"));
}

void what_others_have_begun_stays(void **) {
    TemporaryFolder folder;
    Table table(adam(64), 2);
    CheckpointFolder names(folder.name, system_disk());
    assert_int_equal(names.begin(1, 0xdef), DTRAIN_OK);
    std::ofstream(names.shard_path(1, table_name, 0, 2)) << "some of it";
    for (uint64_t step : {2, 3, 4})
        assert_int_equal(save(table, folder.name, step, quick_disk, 1), DTRAIN_OK);
    assert_true(fs::exists(names.shard_path(1, table_name, 0, 2)));
    assert_int_equal(std::distance(fs::directory_iterator(folder.name), {}), 2);
    assert_int_equal(names.begin(1, 0xabc), DTRAIN_OK); // it is taken over
    assert_int_equal(save(table, folder.name, 5, quick_disk, 1), DTRAIN_OK);
    assert_int_equal(std::distance(fs::directory_iterator(folder.name), {}), 1);
}

void a_bad_manifest_is_named(void **) {
    TemporaryFolder folder;
    Table table(adam(64), 1);
    assert_int_equal(save(table, folder.name, 3, quick_disk), DTRAIN_OK);
    const std::string path = folder.name + "/step-0000000003/manifest.json";
    Manifest another;
    assert_int_equal(CheckpointFolder(folder.name, quick_disk).read(3, another), DTRAIN_OK);
    another.step = 4;
    const std::string texts[] = {"",
                                 "[]",
                                 "{}",
                                 "{\"format\":\"x\"}",
                                 manifest_text(another),
                                 content_of(path) + " ",
                                 manifest_text({.step = 3}) + "}"};
    for (const std::string &text : texts) {
        std::ofstream(path) << text;
        Table other(adam(64), 1);
        assert_refused(path, [&] { return restore(other, folder.name, 3); });
    }
    std::ofstream(path) << R"({"format":"dtrain checkpoint 1","step":3,"tables":[)"
                        << "\n"
                           R"({"name":"a%2Fb%20c","shards":1}]})";
    Table other(adam(64), 1);
    assert_int_equal(restore(other, folder.name, 3), DTRAIN_ERR_UNSUPPORTED);
    assert_non_null(std::strstr(dtrain::error_text(), "earlier version"));
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

        newest = newest_in(folder.name);
        if (newest == UINT64_MAX) return "there is no checkpoint";
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
        cmocka_unit_test(tables_of_16_bits),
        cmocka_unit_test(another_table_is_refused),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(a_part_of_another_checkpoint_is_refused),
        cmocka_unit_test(every_key_is_required),
        cmocka_unit_test(what_is_not_seen_is_not_saved),
        cmocka_unit_test(what_others_have_begun_stays),
        cmocka_unit_test(servers_at_different_clocks),
        cmocka_unit_test(a_parent_that_cannot_be_read),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(a_bad_manifest_is_named),
        cmocka_unit_test(an_error_at_every_step),
        cmocka_unit_test(a_crash_at_every_step),
        cmocka_unit_test(a_sync_that_is_missing_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
