// What a process takes from one generation of an elastic job to the next: its parts of the tables,
// and what it knows of where the tables lie.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/image.h"
#include "ps/table/placement.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

// A part of a table, as a server held it.
struct LegacyPart {
    TableParams params; // placement.among is set
    uint32_t server = 0;
    // nullptr: its memory could not be had. Shared by generations in which nobody has opened the
    // table yet.
    std::shared_ptr<Image> image;
};

// Whether the table with these parameters goes on with `had`'s values. The mode may be another one,
// as no clock is open between generations, and so may the memory.
bool goes_on(TableParams had, const TableParams &now);

struct HandedPart; // handed_part.h
using Handed = std::map<std::string, std::vector<std::shared_ptr<const HandedPart>>>;

struct Legacy {
    std::map<std::string, LegacyPart> parts;     // of a process that serves, by the table's name
    std::map<std::string, Placement> placements; // of a worker's tables; among is set
    Handed handed;                               // parts of workers that have left, by name
};

} // namespace dtrain::ps
