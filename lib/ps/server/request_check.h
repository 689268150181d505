// Checks requests for elements or rows against a table and the server's part of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/key_partition.h"
#include "ps/placement/partition.h"
#include "ps/server/response.h"
#include "ps/table/table_params.h"

#include <cstdint>

namespace dtrain::ps {

class RequestCheck {
  public:
    // params: must outlive this object. partition: of the keys of a sparse table; for a dense one
    // only its version is used. part: of a dense table.
    RequestCheck(const TableParams &params, const KeyPartition &partition, const Part &part,
                 uint32_t server)
        : params_(params), partition_(partition), part_(part), server_(server) {}

    const KeyPartition &partition() const { return partition_; }
    // Reason::none: the request is valid.
    Answer check(const RequestHeader &header, const void *payload, uint64_t bytes) const;

  private:
    Answer check_range(const RequestHeader &header, uint64_t bytes) const;
    Answer check_rows(const RequestHeader &header, const void *payload, uint64_t bytes) const;

    const TableParams &params_;
    const KeyPartition partition_;
    const Part part_;
    const uint32_t server_;
};

} // namespace dtrain::ps
