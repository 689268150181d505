// Reads the items, values and weights of a request.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/consistency.h"
#include "ps/storage/items.h"
#include "ps/table/protocol.h"
#include "ps/table/table_params.h"

#include <bit>
#include <cstdint>
#include <vector>

namespace dtrain::ps {

inline Items items_of(const TableParams &params, const RequestHeader &header, const void *payload) {
    if (!has_trait(header.kind, Trait::rows)) return Items::range(header.first, header.count);
    return Items::rows(static_cast<const uint64_t *>(payload), header.count, params.dim);
}
// The values or state in the payload, which follow the keys if there are any.
inline const void *numbers_of(const RequestHeader &header, const void *payload) {
    if (!has_trait(header.kind, Trait::rows)) return payload;
    return static_cast<const uint64_t *>(payload) + header.count;
}

// The weight of a push or a clock; 0 in the header stands for 1.
inline double weight_of(const RequestHeader &header) {
    return header.argument == 0 ? 1 : std::bit_cast<double>(header.argument);
}
inline bool weight_fits(const TableParams &params, const RequestHeader &header) {
    const auto weight = std::bit_cast<double>(header.argument);
    return header.argument == 0 || (takes_weights(params) && valid_weight(weight));
}
// The number of the sum that collects a push.
inline uint32_t sum_of(const TableParams &params, const RequestHeader &header) {
    return collects_apart(params) ? header.worker
                                  : static_cast<uint32_t>(header.clock % open_clocks);
}

// Converts the values of pushes and of values to set into computed_dtype().
class RequestValues {
  public:
    // params: must outlive this object.
    explicit RequestValues(const TableParams &params) : params_(params) {}

    // The values in the payload itself, or a copy that is valid until the next call.
    const void *computed(const RequestHeader &header, const Items &items, const void *payload);

  private:
    const TableParams &params_;
    std::vector<char> copy_;
};

} // namespace dtrain::ps
