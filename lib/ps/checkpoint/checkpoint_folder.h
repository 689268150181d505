// A folder of checkpoints, numbered by the program's steps.
// SPDX-License-Identifier: Apache-2.0
//
// step-0000000042/weights-00001-of-00003.safetensors, ..., and manifest.json, which is written
// last: a checkpoint without one is not complete. An empty file, lineage-0123456789abcdef, is there
// from its begin to its end and tells whose it is. Several processes may write shards side by side;
// one begins the checkpoint, writes the manifest and removes old ones.
#pragma once
#include "base/status.h"
#include "data/disk.h"
#include "ps/checkpoint/manifest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

// Each failure names the file or folder.
class CheckpointFolder {
  public:
    CheckpointFolder(std::string path, data::Disk &disk) : path_(std::move(path)), disk_(disk) {}

    const std::string &path() const { return path_; }
    std::string folder(uint64_t step) const;
    std::string shard_path(uint64_t step, const std::string &table, uint32_t shard,
                           uint32_t shards) const;
    bool is_complete(uint64_t step) const;

    // Makes the folders that are missing. DTRAIN_ERR_STATE: this checkpoint is complete already.
    Status make(uint64_t step);
    // The same, and makes what is there of an incomplete checkpoint the lineage's.
    Status begin(uint64_t step, uint64_t lineage);
    Status complete(const Manifest &manifest); // all shards have been written
    // What was complete is no longer, so that another of this step may be made.
    Status reopen(uint64_t step);
    // DTRAIN_ERR_NOT_FOUND: no complete one.
    Status read(uint64_t step, Manifest &out) const;
    // All complete ones. Those that cannot be read are left out, and the first such failure is
    // returned.
    Status list(std::vector<Manifest> &out) const;
    // Removes what is old in the lineage (lineage.h), and what of it is before this step and
    // incomplete.
    Status remove_old(uint64_t lineage, uint32_t keep, uint64_t before);

  private:
    std::string manifest_path(uint64_t step) const;
    std::string lineage_path(uint64_t step, uint64_t lineage) const;
    Status steps(std::vector<uint64_t> &out) const; // ascending; also of incomplete ones
    Status names(uint64_t step, std::vector<std::string> &out) const;
    Status erase(const std::string &path);
    Status remove(uint64_t step);
    Status remove_incomplete(uint64_t step, uint64_t lineage);

    std::string path_;
    data::Disk &disk_;
};

} // namespace dtrain::ps
