// Asks the processor for its features.
// SPDX-License-Identifier: Apache-2.0
#include "device/cpu.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace dtrain::device {

#ifdef __x86_64__

bool cpu_has_sse4() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
           __builtin_cpu_supports("aes");
}

bool cpu_has_avx2() {
    unsigned eax, ebx, ecx, edx;
    const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
    return f16c && cpu_has_sse4() && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma");
}

bool cpu_has_avx512() {
    return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw");
}

bool cpu_has_avx512_bf16() { return cpu_has_avx512() && __builtin_cpu_supports("avx512bf16"); }

bool cpu_has_fast_string_copy() {
    constexpr unsigned erms = 1u << 9;
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & erms);
}

#else

bool cpu_has_sse4() { return false; }
bool cpu_has_avx2() { return false; }
bool cpu_has_avx512() { return false; }
bool cpu_has_avx512_bf16() { return false; }
bool cpu_has_fast_string_copy() { return false; }

#endif

} // namespace dtrain::device
