// Computes the map from elements or keys to servers for a placement.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/key_partition.h"
#include "ps/placement/partition.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::ps {

// The parameters must be complete and fit the number of servers. version: grows when a later map
// replaces this one.
Partition make_partition(const TableParams &params, uint32_t servers, uint32_t version = 0);
KeyPartition make_key_partition(const TableParams &params, uint32_t servers, uint32_t version = 0);

// The end of each server's share of `units`, in the order of the servers. Shares are proportional
// to the weights (empty: equal) to within one unit.
std::vector<uint64_t> cut(uint64_t units, uint32_t servers, std::span<const uint32_t> weights);

} // namespace dtrain::ps
