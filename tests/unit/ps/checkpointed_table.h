// The servers' parts of a dense table, saved and restored without servers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/checkpoint/archive.h"
#include "ps/checkpoint/part_heading.h"
#include "ps/placement/placement_map.h"
#include "ps/storage/shard.h"

#include "check.h"
#include "checkpoint_files.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

inline constexpr const char *table_name = "a/b c";

inline TableParams adam(uint64_t length) {
    TableParams params;
    params.length = length;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_ADAM;
    return params;
}

// The parts of one table on so many servers.
struct Table {
    Table(const TableParams &table, uint32_t servers) : params(table) {
        const Partition partition = make_partition(params, servers);
        for (uint32_t s = 0; s < servers; s++)
            shards.push_back(Shard::create(params, partition.part(s)));
    }
    // g, g + slope, ...
    void push(float g, uint64_t first, uint64_t count, float slope = 0) {
        std::vector<float> values(count);
        for (uint64_t i = 0; i < count; i++) values[i] = g + slope * float(i);
        for (auto &shard : shards) {
            bool begins = true;
            shard->part().for_each_overlap({first, count}, [&](const Range &part, uint64_t) {
                const float *from = &values[part.first - first];
                assert_int_equal(shard->push(part, from, begins), Reason::none);
                begins = false;
            });
        }
    }
    std::vector<float> values() const {
        std::vector<float> all(params.length);
        for (const auto &shard : shards)
            for (size_t i = 0; i < shard->part().ranges(); i++) {
                const Range &range = shard->part().range(i);
                std::memcpy(&all[range.first], shard->at(range.first), range.count * sizeof(float));
            }
        return all;
    }

    TableParams params;
    std::vector<std::unique_ptr<Shard>> shards;
};

inline ArchiveJob job_for(RequestKind kind, const Table &table, uint32_t server,
                          const Manifest &manifest) {
    ArchiveJob job;
    job.request.kind = kind;
    job.request.first = manifest.id;
    job.request.argument = manifest.step;
    job.name = table_name;
    job.server = server;
    job.partition = KeyPartition(uint32_t(table.shards.size()));
    return job;
}

// As the servers and a worker do it.
inline Status save(const Table &table, const std::string &path, uint64_t step, data::Disk &disk,
                   uint32_t keep = 0) {
    CheckpointFolder folder(path, disk);
    Manifest manifest = next_manifest(step);
    if (Status s = folder.begin(step, manifest.lineage); s != DTRAIN_OK) return s;
    for (uint32_t i = 0; i < table.shards.size(); i++) {
        ArchiveJob job = job_for(RequestKind::save, table, i, manifest);
        job.image = table.shards[i]->image();
        run(job, folder, disk);
        if (job.status != DTRAIN_OK) return fail(job.status, "%s", job.text.c_str());
    }
    Status s = add_parts(folder, manifest, table_name, uint32_t(table.shards.size()), table.params);
    if (s == DTRAIN_OK) s = folder.complete(manifest);
    return s == DTRAIN_OK && keep > 0 ? folder.remove_old(manifest.lineage, keep, step) : s;
}

inline Status restore(Table &table, const std::string &path, uint64_t step) {
    CheckpointFolder folder(path, data::system_disk());
    Manifest manifest;
    if (Status s = folder.read(step, manifest); s != DTRAIN_OK) return s;
    for (uint32_t i = 0; i < table.shards.size(); i++) {
        ArchiveJob job = job_for(RequestKind::restore, table, i, manifest);
        job.image = std::make_unique<ShardImage>(table.params, table.shards[i]->part());
        run(job, folder, data::system_disk());
        if (job.status != DTRAIN_OK) return fail(job.status, "%s", job.text.c_str());
        table.shards[i]->adopt(std::move(*job.image));
    }
    return DTRAIN_OK;
}

} // namespace dtrain::ps
