// A sparse shard in a safetensors file: the keys, and the values and state of each in the same
// order.
// SPDX-License-Identifier: Apache-2.0
//
// The tensors are "keys" (u64) of one dimension, "values" of rows x dim, and the rule's arrays of
// rows x dim or rows; "steps" are u32. The metadata are those of part_heading.h.
#pragma once
#include "data/disk.h"
#include "data/tensor_reader.h"
#include "ps/checkpoint/part_heading.h"
#include "ps/placement/key_partition.h"
#include "ps/storage/row_image.h"

#include <string>
#include <vector>

namespace dtrain::ps {

Status write_rows(data::Disk &disk, const std::string &path, const std::string &table,
                  const CheckpointName &checkpoint, const RowImage &image);

// Not thread-safe. Every error text names the file.
class RowFile {
  public:
    // DTRAIN_ERR_CORRUPT: damaged; DTRAIN_ERR_MISMATCH: of another checkpoint or table, or with
    // other parameters.
    Status open(const std::string &path, const data::Seal &known, const CheckpointName &checkpoint,
                const std::string &table, const TableParams &params);
    const data::Seal &seal() const { return file_.seal(); }
    const PartHeading &heading() const { return heading_; }
    // Adds the server's rows to the image, reserving memory on the way, and takes over the clock,
    // the rate and the lower number of updates. Reads the whole file once. After a failure the
    // image must not be used.
    Status read(const KeyPartition &partition, uint32_t server, RowImage &image,
                const Reserve &reserve);

  private:
    Status check(const CheckpointName &checkpoint, const std::string &table,
                 const TableParams &params);
    Status read_keys(const KeyPartition &partition, uint32_t server, RowImage &image,
                     const Reserve &reserve);
    Status read_column(const RowImage::Column &column);
    Status take(uint64_t bytes, const uint8_t *&data); // reads and updates the checksum

    data::TensorReader file_;
    PartHeading heading_;
    uint64_t count_ = 0;
    uint32_t crc_ = 0;
    std::vector<char *> places_; // by key: its row in the image; nullptr: of another server
};

} // namespace dtrain::ps
