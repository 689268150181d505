// Chooses the newest checkpoint of a lineage, and checks that a new one may be saved.
// SPDX-License-Identifier: Apache-2.0
#include "ps/checkpoint/lineage.h"

#include "ps/checkpoint/part_heading.h"
#include "ps/table/file_name.h"

#include <algorithm>
#include <set>

namespace dtrain::ps {
namespace {

using ull = unsigned long long;

bool has_all(const Manifest &manifest, std::span<const std::string> tables) {
    return std::all_of(tables.begin(), tables.end(),
                       [&](const std::string &name) { return manifest.find(name) != nullptr; });
}

uint64_t highest_serial(const std::vector<Manifest> &all, uint64_t lineage) {
    uint64_t highest = 0;
    for (const Manifest &one : all)
        if (one.lineage == lineage) highest = std::max(highest, one.serial);
    return highest;
}

} // namespace

std::vector<uint64_t> old_ones(const std::vector<Manifest> &all, uint64_t lineage, uint32_t keep) {
    std::vector<const Manifest *> own;
    for (const Manifest &one : all)
        if (one.lineage == lineage) own.push_back(&one);
    std::sort(own.begin(), own.end(),
              [](const Manifest *a, const Manifest *b) { return a->serial > b->serial; });
    std::set<std::string> seen;
    std::vector<uint64_t> old;
    for (size_t i = 0; i < own.size(); ++i) {
        bool last = false; // it is the last one with some table
        for (const Manifest::Table &table : own[i]->tables) last |= seen.insert(table.name).second;
        if (i >= keep && !last) old.push_back(own[i]->step);
    }
    return old;
}

uint64_t Lineage::known(const std::vector<Manifest> &all) const {
    if (lineage_ != 0) return lineage_;
    for (const Manifest &one : all)
        if (one.job == job_) return one.lineage;
    return 0;
}

void Lineage::learn(const std::vector<Manifest> &all) {
    lineage_ = known(all);
    for (const Manifest &one : all)
        if (one.job == job_ && one.lineage == lineage_)
            for (const Manifest::Table &table : one.tables)
                if (Place &place = tables_[table.name]; one.serial > place.serial)
                    place = {one.serial, one.step};
}

Status Lineage::newest(const std::vector<Manifest> &all, std::span<const std::string> tables,
                       const Manifest *&out) const {
    const uint64_t own = known(all);
    const Manifest *found = nullptr;
    for (const Manifest &one : all) {
        if ((own != 0 && one.lineage != own) || !has_all(one, tables)) continue;
        if (found != nullptr && found->lineage != one.lineage)
            return fail(DTRAIN_ERR_STATE,
                        "steps %llu and %llu were saved by unrelated jobs, so neither is the "
                        "newest: name the step to restore, and give each job a folder of its own "
                        "(checkpoint.directory)",
                        static_cast<ull>(found->step), static_cast<ull>(one.step));
        if (found == nullptr || one.serial > found->serial) found = &one;
    }
    if (found == nullptr)
        return fail(DTRAIN_ERR_NOT_FOUND, "no complete checkpoint%s has table \"%s\"%s",
                    own != 0 ? " of this job's lineage" : "", tables.front().c_str(),
                    tables.size() > 1 ? " and the others" : "");
    out = found;
    return DTRAIN_OK;
}

Status Lineage::next(const std::vector<Manifest> &all, std::span<const std::string> tables,
                     uint64_t step, const std::string &path, Manifest &out,
                     const Manifest *&replaces) {
    learn(all);
    for (const std::string &name : tables) {
        auto place = tables_.find(escaped(name));
        if (place == tables_.end() || step > place->second.step) continue;
        return fail(DTRAIN_ERR_STATE,
                    "step %llu of table \"%s\" is not beyond step %llu, which was saved or "
                    "restored here; give a later step, or restore an older checkpoint first",
                    static_cast<ull>(step), name.c_str(), static_cast<ull>(place->second.step));
    }
    const uint64_t lineage = lineage_ != 0 ? lineage_ : job_;
    replaces = nullptr;
    for (const Manifest &one : all) {
        if (one.step != step) continue;
        if (one.lineage != lineage)
            return fail(DTRAIN_ERR_STATE,
                        "%s belongs to another job, of lineage %s: give this job a folder of its "
                        "own (checkpoint.directory), or restore that checkpoint and continue",
                        path.c_str(), hex(one.lineage).c_str());
        auto left_behind = [&](const Manifest::Table &table) {
            auto place = tables_.find(table.name);
            return place != tables_.end() && place->second.step < step;
        };
        if (!std::all_of(one.tables.begin(), one.tables.end(), left_behind))
            return fail(DTRAIN_ERR_STATE, "%s already exists; remove it or give another step",
                        path.c_str());
        replaces = &one;
    }
    out.step = step;
    out.lineage = lineage;
    out.job = job_;
    out.serial = std::max(serial_, highest_serial(all, lineage)) + 1;
    return DTRAIN_OK;
}

void Lineage::saved(const Manifest &manifest) {
    lineage_ = manifest.lineage;
    serial_ = manifest.serial;
    for (const Manifest::Table &table : manifest.tables)
        tables_[table.name] = {manifest.serial, manifest.step};
}

Lineage::Point Lineage::restored(const std::vector<Manifest> &all, const Manifest &manifest,
                                 std::span<const std::string> tables) {
    const uint64_t serial = highest_serial(all, manifest.lineage);
    const Point point = {manifest.lineage, std::max(serial, manifest.serial), manifest.step};
    for (const std::string &name : tables) take(point, name);
    return point;
}

void Lineage::take(const Point &point, const std::string &table) {
    if (lineage_ != point.lineage) tables_.clear();
    lineage_ = point.lineage;
    serial_ = std::max(serial_, point.serial);
    tables_[escaped(table)] = {point.serial, point.step};
}

} // namespace dtrain::ps
