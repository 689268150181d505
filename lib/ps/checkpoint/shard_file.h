// A dense shard in a safetensors file: its values, the rule's state, and its ranges in the table.
// SPDX-License-Identifier: Apache-2.0
//
// The tensors "values", "momentum", ... have one dimension with the elements (or rows) of the
// shard. The metadata are those of part_heading.h and "length" (of the table), "first" (element)
// and "count"; a shard of several ranges also has "ranges", "first+count,first+count".
#pragma once
#include "data/disk.h"
#include "data/tensor_reader.h"
#include "ps/checkpoint/part_heading.h"
#include "ps/storage/shard_image.h"

#include <string>

namespace dtrain::ps {

Status write_shard(data::Disk &disk, const std::string &path, const std::string &table,
                   const CheckpointName &checkpoint, const ShardImage &image);

// Not thread-safe. Every error text names the file.
class ShardFile {
  public:
    // DTRAIN_ERR_CORRUPT: damaged; DTRAIN_ERR_MISMATCH: of another checkpoint or table, or with
    // other parameters.
    Status open(const std::string &path, const data::Seal &known, const CheckpointName &checkpoint,
                const std::string &table, const TableParams &params);
    const data::Seal &seal() const { return file_.seal(); }
    const PartHeading &heading() const { return heading_; }
    const Part &part() const { return part_; }
    // Copies the elements that file and image have in common, and takes over the clock, the rate
    // and the lower number of updates. Reads the whole file once. After a failure the image must
    // not be used.
    Status read(ShardImage &image);

  private:
    Status check(const CheckpointName &checkpoint, const std::string &table,
                 const TableParams &params);
    Status take_part(uint64_t length);
    Status check_arrays(const TableParams &params);
    Status read_array(const ShardImage::Array &array, uint64_t bytes, ShardImage &image,
                      uint32_t &crc);
    Status put_items(const ShardImage::Array &array, const uint8_t *from, const Range &places,
                     ShardImage &image);

    data::TensorReader file_;
    Part part_;
    PartHeading heading_;
};

} // namespace dtrain::ps
