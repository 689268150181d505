// A folder of checkpoints, numbered by the program's steps.
// SPDX-License-Identifier: Apache-2.0
//
// step-0000000042/weights-00001-of-00003.safetensors, ..., and manifest.json, which is written
// last: a checkpoint without one is not complete. Several processes may write shards side by side;
// one writes the manifest and removes old checkpoints.
#pragma once
#include "base/status.h"
#include "data/disk.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

struct Manifest {
    struct Table {
        std::string name; // escaped(), as files have it
        uint32_t shards = 0;
    };
    uint64_t step = 0;
    std::vector<Table> tables;

    // By its own name; nullptr: it is not in the checkpoint.
    const Table *find(const std::string &name) const;
};

// Each failure names the file or folder.
class CheckpointFolder {
  public:
    CheckpointFolder(std::string path, data::Disk &disk) : path_(std::move(path)), disk_(disk) {}

    const std::string &path() const { return path_; }
    std::string shard_path(uint64_t step, const std::string &table, uint32_t shard,
                           uint32_t shards) const;

    // Makes the folders that are missing. DTRAIN_ERR_STATE: this checkpoint is complete already.
    Status begin(uint64_t step);
    Status complete(const Manifest &manifest); // all shards have been written
    // DTRAIN_ERR_NOT_FOUND: no complete one.
    Status read(uint64_t step, Manifest &out) const;
    Status latest(uint64_t &step) const;
    // Removes complete checkpoints beyond the newest `keep`, and incomplete ones before the newest.
    Status remove_old(uint32_t keep);

  private:
    std::string folder(uint64_t step) const;
    std::string manifest_path(uint64_t step) const;
    bool is_complete(uint64_t step) const;
    Status steps(std::vector<uint64_t> &out) const; // ascending; also of incomplete ones
    Status remove(uint64_t step);

    std::string path_;
    data::Disk &disk_;
};

} // namespace dtrain::ps
