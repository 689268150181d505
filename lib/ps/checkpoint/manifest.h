// The manifest of a checkpoint, which makes it complete: its tables and the seals of their files.
// SPDX-License-Identifier: Apache-2.0
//
// A JSON file whose last line is a checksum of the text before. It has the size of each file of the
// checkpoint and the checksum of the file's heading, which in turn has the checksum of the data. So
// every changed bit is detected, and so is a file of another checkpoint.
#pragma once
#include "base/status.h"
#include "data/tensor_reader.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::ps {

struct Manifest {
    using Part = data::Seal;
    struct Table {
        std::string name;             // escaped(), as in file names
        std::vector<Part> parts = {}; // by server
    };
    uint64_t step = 0;
    uint64_t id = 0;      // random; also stored in the files
    uint64_t lineage = 0; // the same for checkpoints that continue each other, across jobs
    uint64_t serial = 0;  // number of the checkpoint in its lineage, in the order of saving
    uint64_t job = 0;     // the job that saved it
    std::vector<Table> tables = {};

    // name: not escaped. nullptr: the table is not in the checkpoint.
    const Table *find(const std::string &name) const;
};

std::string manifest_text(const Manifest &manifest);
// DTRAIN_ERR_CORRUPT: damaged; DTRAIN_ERR_UNSUPPORTED: an older format.
Status parse_manifest(const std::string &text, Manifest &out);

std::string hex(uint64_t number); // 16 digits

} // namespace dtrain::ps
