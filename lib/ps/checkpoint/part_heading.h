// The heading: the metadata that every file of a checkpoint has.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/safetensors.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <string>

namespace dtrain::ps {

// Identifies the checkpoint that a part belongs to.
struct CheckpointName {
    uint64_t step = 0;
    uint64_t id = 0; // Manifest::id
};

struct PartHeading {
    CheckpointName checkpoint = {};
    uint64_t updates = 0, clock = 0;
    double rate = 0;
    uint32_t crc = 0; // CRC-32C of the data
};

void put_heading(const PartHeading &heading, const char *format, const std::string &table,
                 const TableParams &params, data::TensorIndex &index);
// DTRAIN_ERR_CORRUPT: damaged; DTRAIN_ERR_MISMATCH: of another checkpoint, table or rule, or made
// with other parameters (made_with.h).
Status take_heading(const data::TensorIndex &index, const char *format, const std::string &table,
                    const TableParams &params, const CheckpointName &checkpoint,
                    PartHeading &heading);
void put_number(const char *key, uint64_t value, data::TensorIndex &index);
Status take_number(const data::TensorIndex &index, const char *key, uint64_t &value);
// Checks that there is an array of that name, dtype and shape. DTRAIN_ERR_MISMATCH: there is not.
Status check_array(const data::TensorIndex &index, const char *name, uint32_t dtype,
                   const std::vector<uint64_t> &shape);

} // namespace dtrain::ps
