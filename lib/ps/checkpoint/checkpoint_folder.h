// A folder of checkpoints, which are numbered by the program's steps.
// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint is a folder with the files step-0000000042/weights-00001-of-00003.safetensors, ...,
// and manifest.json, which is written last: a checkpoint without a manifest is not complete. From
// its begin to its removal it also has an empty file, lineage-0123456789abcdef, which tells the
// lineage it belongs to. Several processes may write shards at the same time; one process begins
// the checkpoint, writes the manifest and removes old checkpoints.
#pragma once
#include "base/status.h"
#include "data/disk.h"
#include "ps/checkpoint/manifest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

// Every error text names the file or folder.
class CheckpointFolder {
  public:
    CheckpointFolder(std::string path, data::Disk &disk) : path_(std::move(path)), disk_(disk) {}

    const std::string &path() const { return path_; }
    std::string folder(uint64_t step) const;
    std::string shard_path(uint64_t step, const std::string &table, uint32_t shard,
                           uint32_t shards) const;
    bool is_complete(uint64_t step) const;

    // Creates missing folders. DTRAIN_ERR_STATE: this checkpoint is already complete.
    Status make(uint64_t step);
    // The same, and marks the checkpoint, also if it exists but is incomplete, as the lineage's.
    Status begin(uint64_t step, uint64_t lineage);
    Status complete(const Manifest &manifest); // call it after all shards were written
    // Makes a complete checkpoint incomplete, so that another one of this step can be made.
    Status reopen(uint64_t step);
    // DTRAIN_ERR_NOT_FOUND: there is no complete checkpoint of this step.
    Status read(uint64_t step, Manifest &out) const;
    // Lists all complete checkpoints. Leaves out those that cannot be read, and returns the first
    // such failure; one that says nothing of the checkpoint (is_unread()) before those that do.
    Status list(std::vector<Manifest> &out) const;
    // The disk, or this process, has kept a checkpoint from being read, which may be good.
    static bool is_unread(Status status) {
        return status == DTRAIN_ERR_IO || status == DTRAIN_ERR_NO_MEMORY ||
               status == DTRAIN_ERR_LIMIT;
    }
    // Removes the lineage's old checkpoints (lineage.h), and its incomplete ones before this step.
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
