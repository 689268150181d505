// Records the workers that have pushed a row in a clock, and their total weight, for means over
// these workers (DTRAIN_MEAN_PUSHERS).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

#include <cstdint>
#include <cstring>

namespace dtrain::ps {

// The record follows the row's sum in memory: the total weight, and a bit for each worker.
class RowPushers {
  public:
    RowPushers(const TableParams &params, uint32_t workers)
        : bytes_(params.mean_over == DTRAIN_MEAN_PUSHERS
                     ? sizeof(double) + (uint64_t{workers} + 63) / 64 * sizeof(uint64_t)
                     : 0) {}

    bool kept() const { return bytes_ > 0; } // false for tables that do not need the record
    uint64_t bytes() const { return bytes_; }
    void begin(char *at) const { std::memset(at, 0, bytes_); } // no worker
    // A worker counts once, however often it pushes the row.
    void add(char *at, uint32_t worker, double weight) const {
        const uint64_t word = sizeof weight + worker / 64 * sizeof(uint64_t);
        const uint64_t bits = number<uint64_t>(at + word), bit = uint64_t{1} << worker % 64;
        if ((bits & bit) != 0) return;
        put(at + word, bits | bit);
        put(at, this->weight(at) + weight);
    }
    void add_others(char *at, const char *others) const { // no worker may be in both
        put(at, weight(at) + weight(others));
    }
    double weight(const char *at) const { return number<double>(at); }

  private:
    template <class T> static T number(const char *at) {
        T value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    template <class T> static void put(char *at, T value) { std::memcpy(at, &value, sizeof value); }

    uint64_t bytes_;
};

} // namespace dtrain::ps
