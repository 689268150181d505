// What makes a checkpoint complete: which tables it has, and by what their files are known.
// SPDX-License-Identifier: Apache-2.0
//
// A file of JSON whose last line is a checksum of what is before it. It has the size of each file
// of the checkpoint and the checksum of its heading, which has the checksum of the data: so no bit
// of any of them can change, nor a file of another checkpoint take its place, unnoticed.
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
        std::string name;             // escaped(), as files have it
        std::vector<Part> parts = {}; // by server
    };
    uint64_t step = 0;
    uint64_t id = 0;      // random; its files have it, too
    uint64_t lineage = 0; // what goes on from one another, across jobs, has the same
    uint64_t serial = 0;  // counts the checkpoints of a lineage, in the order of their making
    uint64_t job = 0;     // that made it
    std::vector<Table> tables = {};

    // By its own name; nullptr: it is not in the checkpoint.
    const Table *find(const std::string &name) const;
};

std::string manifest_text(const Manifest &manifest);
// DTRAIN_ERR_CORRUPT; DTRAIN_ERR_UNSUPPORTED: of an older format.
Status parse_manifest(const std::string &text, Manifest &out);

std::string hex(uint64_t number); // 16 digits

} // namespace dtrain::ps
