// A job without a network: its tables on servers, saved and restored in the order in which a worker
// and its servers do it (lib/ps/node/checkpointer.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/checkpoint/archive.h"
#include "ps/checkpoint/lineage.h"
#include "ps/placement/placement_map.h"
#include "ps/storage/storage.h"
#include "ps/table/file_name.h"

#include "check.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

// A dense table of `size` elements, or a sparse one of `size` rows.
struct StoredTable {
    StoredTable(std::string table, const TableParams &its, uint32_t servers)
        : name(std::move(table)), params(its), keys(servers) {
        const Partition partition = make_partition(params, servers);
        for (uint32_t s = 0; s < servers; s++)
            parts.push_back(Storage::create(params, partition.part(s), nullptr, 1));
    }
    // Elements get g, 2 g, ...; rows of a sparse table have the keys 0, 1, ...
    void push(float g, uint64_t rows = 0) {
        std::vector<float> values(params.length + params.dim);
        for (size_t i = 0; i < values.size(); i++) values[i] = g * float(i + 1);
        if (!is_sparse(params)) {
            const Partition partition = make_partition(params, uint32_t(parts.size()));
            for (uint32_t s = 0; s < parts.size(); s++)
                for (size_t r = 0; r < partition.part(s).ranges(); r++) {
                    const Range range = partition.part(s).range(r);
                    const Items items = Items::range(range.first, range.count);
                    assert_int_equal(parts[s]->push(items, &values[range.first], r == 0, 0),
                                     Reason::none);
                }
        }
        for (uint64_t key = 0; key < rows; key++) {
            const Items items = Items::rows(&key, 1, params.dim);
            assert_int_equal(parts[keys.server_of(key)]->push(items, values.data(), true, 0),
                             Reason::none);
        }
    }

    std::string name;
    TableParams params;
    KeyPartition keys;
    std::vector<std::unique_ptr<Storage>> parts; // by server
};
using StoredTables = std::vector<std::shared_ptr<StoredTable>>;

inline ArchiveJob job_for(RequestKind kind, const StoredTable &table, uint32_t server,
                          const Manifest &manifest) {
    ArchiveJob job;
    job.request.kind = kind;
    job.request.first = manifest.id;
    job.request.argument = manifest.step;
    job.name = table.name;
    job.server = server;
    job.partition = table.keys;
    job.image = kind == RequestKind::save ? table.parts[server]->begin_image()
                                          : table.parts[server]->blank_image();
    return job;
}

class Saver {
  public:
    Saver(const std::string &path, data::Disk &disk, uint32_t keep, uint64_t job)
        : folder_(path, disk), disk_(disk), keep_(keep), lineage_(job) {}

    // after_part() is called when the worker has begun, and whenever a server has written its
    // parts; what follows is the worker's work again.
    Status save(
        const StoredTables &tables, uint64_t step,
        const std::function<void()> &after_part = [] {}) {
        Manifest manifest;
        if (Status s = begin(tables, step, manifest); s != DTRAIN_OK) return s;
        after_part();
        for (uint32_t server = 0; server < tables[0]->parts.size(); server++) {
            for (const auto &table : tables)
                if (Status s = write(*table, server, manifest); s != DTRAIN_OK) return s;
            after_part();
        }
        for (const auto &table : tables)
            if (Status s = add_parts(folder_, manifest, table->name, uint32_t(table->parts.size()),
                                     table->params);
                s != DTRAIN_OK)
                return s;
        if (Status s = folder_.complete(manifest); s != DTRAIN_OK) return s;
        lineage_.saved(manifest);
        return folder_.remove_old(manifest.lineage, keep_, step);
    }
    // The newest checkpoint, or that of a step.
    Status restore(const StoredTables &tables, Manifest &chosen, uint64_t step = UINT64_MAX) {
        std::vector<Manifest> all;
        if (Status s = folder_.list(all); s != DTRAIN_OK) return s;
        const Manifest *newest = nullptr;
        if (step != UINT64_MAX) {
            if (Status s = folder_.read(step, chosen); s != DTRAIN_OK) return s;
        } else {
            if (Status s = lineage_.newest(all, names_of(tables), newest); s != DTRAIN_OK) return s;
            chosen = *newest;
        }
        for (const auto &table : tables)
            if (Status s = read(*table, chosen); s != DTRAIN_OK) return s;
        lineage_.restored(all, chosen, names_of(tables));
        return DTRAIN_OK;
    }
    // The same, but OK if there is none: at.id is 0 then.
    Status restore_any(const StoredTables &tables, Manifest &at) {
        const Status s = restore(tables, at);
        return s == DTRAIN_ERR_NOT_FOUND ? Status{DTRAIN_OK} : s;
    }
    Status read(const StoredTable &table, const Manifest &manifest) {
        for (uint32_t server = 0; server < table.parts.size(); server++) {
            ArchiveJob job = job_for(RequestKind::restore, table, server, manifest);
            run(job, folder_, disk_);
            if (job.status != DTRAIN_OK) return fail(job.status, "%s", job.text.c_str());
            table.parts[server]->adopt(std::move(*job.image));
        }
        return DTRAIN_OK;
    }
    Status list(std::vector<Manifest> &all) const { return folder_.list(all); }

  private:
    static std::vector<std::string> names_of(const StoredTables &tables) {
        std::vector<std::string> names;
        for (const auto &table : tables) names.push_back(table->name);
        return names;
    }
    Status begin(const StoredTables &tables, uint64_t step, Manifest &manifest) {
        static uint64_t made = 0;
        std::vector<Manifest> all;
        if (Status s = folder_.list(all); s != DTRAIN_OK) return s;
        const Manifest *replaced = nullptr;
        if (Status s = lineage_.next(all, names_of(tables), step, folder_.folder(step), manifest,
                                     replaced);
            s != DTRAIN_OK)
            return s;
        manifest.id = ++made;
        if (replaced != nullptr)
            if (Status s = folder_.reopen(step); s != DTRAIN_OK) return s;
        return folder_.begin(step, manifest.lineage);
    }
    Status write(const StoredTable &table, uint32_t server, const Manifest &manifest) {
        ArchiveJob job = job_for(RequestKind::save, table, server, manifest);
        const std::shared_ptr<GradualCopy> copy = job.copy();
        run(job, folder_, disk_);
        table.parts[server]->end(*copy);
        return job.status == DTRAIN_OK ? job.status : fail(job.status, "%s", job.text.c_str());
    }

    CheckpointFolder folder_;
    data::Disk &disk_;
    uint32_t keep_;
    Lineage lineage_;
};

} // namespace dtrain::ps
