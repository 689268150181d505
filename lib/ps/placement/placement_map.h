// The map from elements or keys to servers that a placement means.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/key_partition.h"
#include "ps/placement/partition.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::ps {

// The parameters are complete, and fit so many servers. version: grows when a later map replaces
// this one.
Partition make_partition(const TableParams &params, uint32_t servers, uint32_t version = 0);
KeyPartition make_key_partition(const TableParams &params, uint32_t servers, uint32_t version = 0);

// By server: where its share of `units` ends, in their order. Shares are as the weights (empty:
// equal), to within one unit.
std::vector<uint64_t> cut(uint64_t units, uint32_t servers, std::span<const uint32_t> weights);

} // namespace dtrain::ps
