// A lineage: the checkpoints that a job saves, and those that it continued from.
// SPDX-License-Identifier: Apache-2.0
//
// A job that restores nothing begins a lineage; a job that restores a checkpoint continues the
// lineage of that checkpoint. Along a lineage the steps of each table grow, except when an older
// checkpoint is restored: later checkpoints are then left behind. So the newest checkpoint is the
// one that was saved last, whatever its step.
#pragma once
#include "ps/checkpoint/manifest.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace dtrain::ps {

// The steps of the checkpoints to remove: all except the `keep` that were saved last and, for each
// table, the last one that has it.
std::vector<uint64_t> old_ones(const std::vector<Manifest> &all, uint64_t lineage, uint32_t keep);

class Lineage {
  public:
    // job: the job's number; a lineage that it begins has the same number.
    explicit Lineage(uint64_t job = 0) : job_(job) {}

    // The job's point in its lineage, for workers that did not restore themselves.
    struct Point {
        uint64_t lineage = 0, serial = 0, step = 0;
    };
    // Finds the checkpoint with all these tables that was saved last. DTRAIN_ERR_NOT_FOUND: there
    // is none. DTRAIN_ERR_STATE: several lineages have such checkpoints, and the job is in none.
    Status newest(const std::vector<Manifest> &all, std::span<const std::string> tables,
                  const Manifest *&out) const;
    // Fills in the manifest of a new checkpoint of this step, except for its parts.
    // DTRAIN_ERR_STATE: a table was saved or restored at this step or a later one. replaces: an
    // existing checkpoint of the step that was left behind, or nullptr. path: for error texts.
    Status next(const std::vector<Manifest> &all, std::span<const std::string> tables,
                uint64_t step, const std::string &path, Manifest &out, const Manifest *&replaces);

    void saved(const Manifest &manifest);
    Point restored(const std::vector<Manifest> &all, const Manifest &manifest,
                   std::span<const std::string> tables);
    void take(const Point &point, const std::string &table); // after another worker restored it

  private:
    struct Place {
        uint64_t serial = 0, step = 0;
    };
    uint64_t known(const std::vector<Manifest> &all) const; // the job's lineage; 0: none
    void learn(const std::vector<Manifest> &all);           // adds what other workers have saved

    uint64_t job_;
    uint64_t lineage_ = 0;                // 0: the job has neither saved nor restored
    uint64_t serial_ = 0;                 // the highest known serial of the lineage
    std::map<std::string, Place> tables_; // by escaped name: the last save or restore
};

} // namespace dtrain::ps
