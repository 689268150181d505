// Checkpoints of sparse tables: restored on any number of servers, and what may be wrong with them.
// SPDX-License-Identifier: Apache-2.0
#include "device/kernels.h"
#include "ps/checkpoint/archive.h"
#include "ps/checkpoint/row_file.h"

#include "check.h"
#include "checkpoint_files.h"
#include "faulty_disk.h"

#include <cstring>
#include <fstream>
#include <random>

using namespace dtrain::ps;
namespace fs = std::filesystem;

namespace {

FaultyDisk disk; // without faults

TableParams params_of(uint32_t rule, uint32_t dtype = DTRAIN_F32) {
    TableParams params;
    params.dim = 5;
    params.dtype = dtype;
    params.rule = rule;
    params.initial = 0.5;
    // How values are rounded at random is a function of the updates on a server.
    if (is_half(dtype)) params.storage_dtype = DTRAIN_F32;
    return params;
}

struct Table {
    Table(const TableParams &table, uint32_t servers) : params(table), partition(servers) {
        for (uint32_t s = 0; s < servers; s++)
            shards.push_back(std::make_unique<SparseShard>(params));
    }
    void push(const std::vector<uint64_t> &keys, double g) {
        for (uint64_t key : keys) {
            const std::vector<double> values(params.dim, g); // some numbers, whatever the type
            SparseShard &shard = *shards[partition.server_of(key)];
            assert_int_equal(shard.push(&key, 1, values.data(), true), Reason::none);
        }
    }
    std::string row(uint64_t key) const {
        SparseShard &shard = *shards[partition.server_of(key)];
        auto values = shard.gather(&key, 1);
        return {values->at(0), params.dim * dtrain::device::dtype_size(params.dtype)};
    }

    TableParams params;
    KeyPartition partition;
    std::vector<std::unique_ptr<SparseShard>> shards;
};

ArchiveJob job_for(RequestKind kind, const Table &table, uint32_t server,
                   const Manifest &manifest) {
    ArchiveJob job;
    job.request.kind = kind;
    job.request.first = manifest.id;
    job.request.argument = manifest.step;
    job.name = "t";
    job.server = server;
    job.partition = table.partition;
    return job;
}

void save(const Table &table, const std::string &path) {
    CheckpointFolder folder(path, disk);
    Manifest manifest = next_manifest(1);
    for (uint32_t i = 0; i < table.shards.size(); i++) {
        ArchiveJob job = job_for(RequestKind::save, table, i, manifest);
        job.image = table.shards[i]->image();
        run(job, folder, disk);
        assert_int_equal(job.status, DTRAIN_OK);
    }
    const auto parts = uint32_t(table.shards.size());
    assert_int_equal(add_parts(folder, manifest, "t", parts, table.params), DTRAIN_OK);
    assert_int_equal(folder.complete(manifest), DTRAIN_OK);
}

dtrain::Status restore(Table &table, const std::string &path, uint64_t limit = UINT64_MAX) {
    CheckpointFolder folder(path, disk);
    Manifest manifest;
    if (dtrain::Status s = folder.read(1, manifest); s != DTRAIN_OK) return s;
    for (uint32_t i = 0; i < table.shards.size(); i++) {
        ArchiveJob job = job_for(RequestKind::restore, table, i, manifest);
        job.image = std::make_unique<RowImage>(table.params);
        uint64_t left = limit;
        run(job, folder, disk, [&](uint64_t bytes) {
            const uint64_t granted = std::min(bytes, left);
            left -= granted;
            return granted;
        });
        if (job.status != DTRAIN_OK) return dtrain::fail(job.status, "%s", job.text.c_str());
        table.shards[i]->adopt(std::move(*job.image->as_rows()));
    }
    return DTRAIN_OK;
}

std::vector<uint64_t> some_keys(size_t count) {
    std::mt19937_64 random(count);
    std::vector<uint64_t> keys = {0, UINT64_MAX};
    while (keys.size() < count) keys.push_back(random());
    return keys;
}

void any_number_of_servers(void **) {
    const std::vector<uint64_t> keys = some_keys(5000), fresh = {1, 2, 3};
    for (uint32_t rule : builtin_rules())
        for (uint32_t dtype : {DTRAIN_F32, DTRAIN_F64, DTRAIN_F16})
            for (auto [before, after] : {std::pair{1u, 3u}, {3u, 1u}, {2u, 5u}}) {
                if (rule_info(rule).is(RuleInfo::backs_up)) continue; // dense tables only
                TemporaryFolder folder;
                Table table(params_of(rule, dtype), before), other(params_of(rule, dtype), after);
                table.push(keys, 0.25);
                table.push({keys.begin(), keys.begin() + 100}, 0.5);
                other.push({7, 8, 9, keys[5]}, 3); // is replaced
                save(table, folder.name);
                assert_int_equal(restore(other, folder.name), DTRAIN_OK);
                for (uint64_t key : keys) assert_true(table.row(key) == other.row(key));
                assert_true(other.row(7) == table.row(7)); // never pushed to
                for (Table *both : {&table, &other}) both->push(keys, -0.125);
                for (Table *both : {&table, &other}) both->push(fresh, 1);
                for (uint64_t key : keys) assert_true(table.row(key) == other.row(key));
                for (uint64_t key : fresh) assert_true(table.row(key) == other.row(key));
            }
}

// Counts of the table's, and what rows begin with.
void numbers_of_the_table_go_on(void **) {
    TableParams adam = params_of(DTRAIN_RULE_ADAM), ftrl = params_of(DTRAIN_RULE_FTRL);
    adam.steps = DTRAIN_STEPS_TABLE;
    adam.warmup_steps = 5000;
    ftrl.accumulator = 0.1;
    for (const TableParams &params : {adam, ftrl}) {
        TemporaryFolder folder;
        Table table(params, 1), other(params, 3);
        table.push(some_keys(2000), 0.25);
        save(table, folder.name);
        assert_int_equal(restore(other, folder.name), DTRAIN_OK);
        for (const auto &shard : other.shards) assert_int_equal(shard->updates(), 2000);
        for (Table *both : {&table, &other}) both->push({UINT64_MAX}, 1);
        assert_true(table.row(UINT64_MAX) == other.row(UINT64_MAX));
        Table fresh(params, 3);
        assert_int_equal(restore(fresh, folder.name), DTRAIN_OK);
        Table again(params, 1);
        assert_int_equal(restore(again, folder.name), DTRAIN_OK);
        for (Table *both : {&fresh, &again}) both->push({1}, 1); // a new row
        assert_true(fresh.row(1) == again.row(1));
    }
}

void an_empty_table(void **) {
    TemporaryFolder folder;
    Table table(params_of(DTRAIN_RULE_ADAM), 2), other(params_of(DTRAIN_RULE_ADAM), 3);
    save(table, folder.name);
    other.push({1, 2, 3}, 1);
    assert_int_equal(restore(other, folder.name), DTRAIN_OK);
    assert_true(other.row(1) == table.row(1));
}

void what_does_not_fit_is_named(void **) {
    TemporaryFolder folder;
    Table table(params_of(DTRAIN_RULE_ADAGRAD), 1);
    table.push(some_keys(1000), 1);
    save(table, folder.name);
    auto refuses = [&](const TableParams &params, dtrain::Status status, const char *says,
                       uint64_t limit = UINT64_MAX) {
        Table other(params, 1);
        assert_int_equal(restore(other, folder.name, limit), status);
        if (std::strstr(dtrain::error_text(), says) == nullptr)
            fail_msg("\"%s\" does not say \"%s\"", dtrain::error_text(), says);
    };
    TableParams params = params_of(DTRAIN_RULE_ADAGRAD);
    const uint64_t needed = table.shards[0]->memory();
    refuses(params, DTRAIN_ERR_LIMIT, "memory limit of the server", needed - 1);
    params.max_bytes = needed - 1;
    refuses(params, DTRAIN_ERR_LIMIT, "(max_bytes)");
    params.max_bytes = needed;
    Table fits(params, 1);
    assert_int_equal(restore(fits, folder.name, needed), DTRAIN_OK);
    params.dim = 6;
    refuses(params, DTRAIN_ERR_MISMATCH, "shape");
    refuses(params_of(DTRAIN_RULE_ADAGRAD, DTRAIN_F64), DTRAIN_ERR_MISMATCH,
            "its \"values\" are f32, the table's f64");
    refuses(params_of(DTRAIN_RULE_SGD), DTRAIN_ERR_MISMATCH, "rule");
    // Rows that were never pushed to would be others.
    params = params_of(DTRAIN_RULE_ADAGRAD);
    params.seed = 8;
    refuses(params, DTRAIN_ERR_MISMATCH, "made with seed 0 and has 8 now");
    params.seed = 0;
    params.initial = 0.25;
    refuses(params, DTRAIN_ERR_MISMATCH, "made with initial 0.5 and has 0.25 now");
    params.initial = 0.5;
    params.distribution = DTRAIN_INITIAL_UNIFORM;
    refuses(params, DTRAIN_ERR_MISMATCH, "made with distribution");
    TableParams dense;
    dense.length = 10;
    dense.dtype = DTRAIN_F32;
    dense.rule = DTRAIN_RULE_ADAGRAD;
    CheckpointFolder names(folder.name, disk);
    Manifest manifest;
    assert_int_equal(names.read(1, manifest), DTRAIN_OK);
    assert_int_equal(check_parts(names, manifest, "t", dense), DTRAIN_ERR_CORRUPT);
    // The same rows in both files.
    fs::copy(names.shard_path(1, "t", 0, 1), names.shard_path(1, "t", 0, 2));
    fs::copy(names.shard_path(1, "t", 0, 1), names.shard_path(1, "t", 1, 2));
    manifest.tables[0].parts.resize(2, {1, 0}); // any
    assert_int_equal(names.complete(manifest), DTRAIN_OK);
    seal_again(names, 1);
    refuses(params_of(DTRAIN_RULE_ADAGRAD), DTRAIN_ERR_CORRUPT, "a key twice");
}

void damage_is_found(void **) {
    TemporaryFolder folder;
    TableParams params = params_of(DTRAIN_RULE_ADAM);
    params.dim = 2;
    Table table(params, 1);
    table.push({1, 2, 3}, 1);
    save(table, folder.name);
    damage_every_bit(folder.name + "/step-0000000001", [&] {
        Table other(params, 1);
        return restore(other, folder.name);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_servers), cmocka_unit_test(numbers_of_the_table_go_on),
        cmocka_unit_test(an_empty_table),        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(damage_is_found),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
