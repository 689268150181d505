// The properties of a named tensor on which the ranks must agree.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::gradients {

inline constexpr size_t max_name = 255;      // in bytes
inline constexpr size_t max_pending = 16384; // waiting submissions of one rank
inline constexpr size_t max_tensors = 65536; // different names that wait on any rank
inline constexpr uint32_t no_tensor = UINT32_MAX;

struct TensorSpec {
    uint64_t count = 0; // elements
    uint8_t dtype = 0;  // DTRAIN_F32, ...
    uint8_t op = 0;     // DTRAIN_SUM, ...

    bool operator==(const TensorSpec &) const = default;
};

// ERR_INVALID unless name and spec can be submitted. The size of a valid spec fits into 63 bits.
Status check_tensor(std::string_view name, uint64_t count, uint32_t dtype, uint32_t op);
uint64_t bytes_of(const TensorSpec &spec);
std::string describe(const TensorSpec &spec); // as in "f32[10] sum"

} // namespace dtrain::gradients
