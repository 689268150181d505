// Which checkpoints of a folder belong to a job: what it saves, and what it went on from.
// SPDX-License-Identifier: Apache-2.0
//
// A job that restores nothing begins a lineage; one that restores a checkpoint continues its. Along
// a lineage the steps of each table grow, but where an older checkpoint was restored: what was
// saved beyond it is left behind. So the newest is the one that was saved last, whatever its step.
#pragma once
#include "ps/checkpoint/manifest.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace dtrain::ps {

// The steps of those to be removed: beyond the `keep` that were saved last, but never the last one
// that has some table.
std::vector<uint64_t> old_ones(const std::vector<Manifest> &all, uint64_t lineage, uint32_t keep);

class Lineage {
  public:
    // job: its number, which is that of a lineage that it begins.
    explicit Lineage(uint64_t job = 0) : job_(job) {}

    // Of what the job is in: how far it is, for others that did not restore.
    struct Point {
        uint64_t lineage = 0, serial = 0, step = 0;
    };
    // The last one that was saved with all these tables: DTRAIN_ERR_NOT_FOUND; DTRAIN_ERR_STATE:
    // those of several lineages have them, and the job is in none.
    Status newest(const std::vector<Manifest> &all, std::span<const std::string> tables,
                  const Manifest *&out) const;
    // What a checkpoint of this step is to be: all but its parts. DTRAIN_ERR_STATE: a table was
    // saved or restored at this step or a later one. replaces: one of the step, which was left
    // behind, or nullptr. path: for texts.
    Status next(const std::vector<Manifest> &all, std::span<const std::string> tables,
                uint64_t step, const std::string &path, Manifest &out, const Manifest *&replaces);

    void saved(const Manifest &manifest);
    Point restored(const std::vector<Manifest> &all, const Manifest &manifest,
                   std::span<const std::string> tables);
    void take(const Point &point, const std::string &table); // as another worker restored it

  private:
    struct Place {
        uint64_t serial = 0, step = 0;
    };
    uint64_t known(const std::vector<Manifest> &all) const; // 0: none
    void learn(const std::vector<Manifest> &all);           // what other workers have saved

    uint64_t job_;
    uint64_t lineage_ = 0;                // 0: it has neither saved nor restored
    uint64_t serial_ = 0;                 // the highest known of it
    std::map<std::string, Place> tables_; // by escaped name: last saved, or restored
};

} // namespace dtrain::ps
