// What the processor (and the system, which saves its registers) can do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dtrain::device {

// Everything that Highway's target of this name uses; each includes the one before.
bool cpu_has_sse4();
bool cpu_has_avx2();
bool cpu_has_avx512();
bool cpu_has_avx512_bf16();

// Whether `rep movsb` is a fast copy (ERMS).
bool cpu_has_fast_string_copy();

} // namespace dtrain::device
