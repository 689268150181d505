// What the processor can do (and the operating system, which must save its registers).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dtrain::device {

// Whether the processor has everything that Highway's target of this name uses; each target
// includes the one before.
bool cpu_has_sse4();
bool cpu_has_avx2();
bool cpu_has_avx512();
bool cpu_has_avx512_bf16();

// Whether `rep movsb` copies fast (ERMS).
bool cpu_has_fast_string_copy();

} // namespace dtrain::device
