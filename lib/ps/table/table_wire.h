// The wire format of a table's parameters and name, and of the states of its function.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::ps {

// The payload of a create request: TableFields, the length of the function's name in bytes, the
// number of segments, the function's name, the segments, the placement, the number of proofs, the
// proofs (access.h), the table's name.
std::string encode_table(const TableParams &params, std::string_view name,
                         std::string_view proofs = {});
// Decodes that payload from a peer; false: it is malformed. bad: the first parameter that is not
// valid, or field_count. proofs: within the payload.
bool decode_table(const void *payload, uint64_t bytes, TableParams &params, std::string &name,
                  uint32_t &bad, std::string_view *proofs = nullptr);
// The first parameter that differs, or field_count.
uint32_t first_difference(const TableParams &a, const TableParams &b);

// The payload of the answer to a create request for a table with a function.
std::string encode_states(const std::vector<FunctionState> &states);
bool decode_states(const void *payload, uint64_t bytes, std::vector<FunctionState> &states);

} // namespace dtrain::ps
