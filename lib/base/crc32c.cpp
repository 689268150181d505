// CRC-32C by tables, and with the instructions of x86-64 and Arm.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace dtrain {
namespace {

using CrcTable = std::array<std::array<uint32_t, 256>, 8>;

// table[k][b]: the effect of byte b on the state when k zero bytes follow it.
constexpr CrcTable make_crc_table() {
    constexpr uint32_t polynomial = 0x82f63b78; // reflected
    CrcTable table{};
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t state = b;
        for (int bit = 0; bit < 8; bit++) state = (state >> 1) ^ (state & 1 ? polynomial : 0);
        table[0][b] = state;
    }
    for (size_t k = 1; k < 8; k++)
        for (size_t b = 0; b < 256; b++)
            table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 255];
    return table;
}
constexpr CrcTable crc_table = make_crc_table();

// Processes eight bytes per step. Source: M. Kounavis and F. Berry, "Novel Table Lookup-Based
// Algorithms for High-Performance CRC Generation", 2008.
uint32_t update_table(uint32_t state, const uint8_t *p, size_t length) {
    for (; length >= 8; p += 8, length -= 8)
        state = crc_table[7][(state ^ p[0]) & 255] ^ crc_table[6][((state >> 8) ^ p[1]) & 255] ^
                crc_table[5][((state >> 16) ^ p[2]) & 255] ^ crc_table[4][(state >> 24) ^ p[3]] ^
                crc_table[3][p[4]] ^ crc_table[2][p[5]] ^ crc_table[1][p[6]] ^ crc_table[0][p[7]];
    for (; length > 0; p++, length--) state = (state >> 8) ^ crc_table[0][(state ^ *p) & 255];
    return state;
}

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] uint32_t update_sse42(uint32_t state, const uint8_t *p, size_t length) {
    uint64_t wide = state;
    for (; length >= 8; p += 8, length -= 8) {
        uint64_t word;
        std::memcpy(&word, p, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    state = uint32_t(wide);
    for (; length > 0; p++, length--) state = _mm_crc32_u8(state, *p);
    return state;
}
bool has_sse42() { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__aarch64__)
// In assembler, since arm_acle.h has the intrinsics only if the whole file is built for the
// extension.
uint32_t update_arm(uint32_t state, const uint8_t *p, size_t length) {
    for (; length >= 8; p += 8, length -= 8) {
        uint64_t word;
        std::memcpy(&word, p, 8);
        asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %1" : "+r"(state) : "r"(word));
    }
    for (; length > 0; p++, length--)
        asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(uint32_t(*p)));
    return state;
}
bool has_arm_crc() {
    constexpr unsigned long hwcap_crc32 = 1 << 7; // HWCAP_CRC32 of asm/hwcap.h
    return (getauxval(AT_HWCAP) & hwcap_crc32) != 0;
}
#endif

bool any_processor() { return true; }

constexpr Crc32cKernel crc_kernels[] = {
#if defined(__x86_64__)
    {"sse4.2", update_sse42, has_sse42},
#elif defined(__aarch64__)
    {"arm-crc", update_arm, has_arm_crc},
#endif
    {"table", update_table, any_processor},
};

auto best_kernel() {
    const Crc32cKernel *kernel = crc_kernels;
    while (!kernel->usable()) kernel++;
    return kernel->update;
}

} // namespace

uint32_t crc32c(const void *data, size_t length, uint32_t crc) {
    static const auto update = best_kernel();
    return ~update(~crc, static_cast<const uint8_t *>(data), length);
}

std::span<const Crc32cKernel> crc32c_kernels() { return crc_kernels; }

} // namespace dtrain
