// An image of a dense shard's contents, to be written to a checkpoint or read from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/optimizer/step_counts.h"
#include "ps/placement/partition.h"
#include "ps/storage/dense_values.h"
#include "ps/storage/image.h"
#include "ps/table/buffer.h"
#include "ps/table/rules.h"
#include "ps/table/table_params.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::ps {

struct ShardImage final : Image {
    ShardImage(const TableParams &params, const Part &part);
    // Allocates zeroed values and state; false: no memory.
    bool allocate(Buffer::Pages pages = Buffer::Pages::huge);
    void reuse(ShardImage &&other); // takes the memory of an allocated image
    bool lend() const override;
    uint64_t kept_bytes(uint64_t charged) const override { return charged; }
    ShardImage *as_shard() override { return this; }
    // The bytes of values and state.
    static uint64_t bytes_of(const TableParams &params, uint64_t count);

    // The values, or an array of the rule's state.
    struct Array {
        std::string name;
        uint32_t dtype;
        uint64_t size, elements; // bytes of an item; elements of the table that share it
        uint64_t width;          // numbers in an item
        char *numbers;           // nullptr: the array is `steps`
        // The items for this many elements; the table's last item may have fewer elements.
        uint64_t items(uint64_t count) const { return (count + elements - 1) / elements; }
    };
    std::vector<Array> arrays() const; // values, the scales of int8, state
    static std::vector<Array> arrays_of(const TableParams &params); // without numbers

    Part part;
    DenseValues values;
    std::vector<std::shared_ptr<Buffer>> slots; // by index in slots_of()
    StepCounts steps;                           // counts of elements or rows
};

} // namespace dtrain::ps
