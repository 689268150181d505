// What is done for ranks whose buffers lie on one accelerator, as data.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

namespace dtrain::collectives {

// Where a part of a rank's buffer begins, in bytes.
struct DevicePart {
    uint32_t rank = 0;
    bool in_result = false; // of its receive buffer, else of its send buffer
    uint64_t offset = 0;
};

// Stores the sum of several parts, or the only one, as it is or multiplied, to all targets.
struct DeviceStep {
    std::vector<DevicePart> from, to;
    uint64_t bytes = 0; // of each part
    double factor = 1;  // of the only source
};

// Steps in order.
using DeviceJob = std::vector<DeviceStep>;

} // namespace dtrain::collectives
