// What a shard holds, apart from it: on its way to a checkpoint, or from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/step_counts.h"
#include "ps/placement/partition.h"
#include "ps/storage/dense_values.h"
#include "ps/storage/gradual_copy.h"
#include "ps/table/buffer.h"
#include "ps/table/rules.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

struct ShardImage {
    ShardImage(const TableParams &params, const Part &part);
    // Values and state, zeroed; false: no memory.
    bool allocate(Buffer::Pages pages = Buffer::Pages::huge);
    void reuse(ShardImage &&other); // that was allocated: its memory
    bool lend() const;              // it, while nobody needs the image
    // That they take.
    static uint64_t bytes_of(const TableParams &params, uint64_t count);

    // The values, or an array of the rule's state.
    struct Array {
        std::string name;
        uint32_t dtype;
        uint64_t size, elements; // bytes of an item; elements of the table that share it
        uint64_t width;          // numbers of an item
        char *numbers;           // nullptr: these are `steps`
        // Of so many elements; the table's last ones may share an item of their own.
        uint64_t items(uint64_t count) const { return (count + elements - 1) / elements; }
    };
    std::vector<Array> arrays() const; // values, the scales of int8, state
    static std::vector<Array> arrays_of(const TableParams &params); // without numbers

    TableParams params;
    Part part;
    DenseValues values;
    std::vector<std::shared_ptr<Buffer>> slots; // as slots_of()
    StepCounts steps;                           // of elements, or rows
    // As long as that goes on, values and state are still to come.
    std::shared_ptr<ArrayCopy> copy;
    uint64_t updates = 0, clock = 0;
    double rate = 0;
};

} // namespace dtrain::ps
