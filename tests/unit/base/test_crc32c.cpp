// CRC-32C: known vectors, and every kernel of this processor against a bitwise reference.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "check.h"

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

using namespace dtrain;

namespace {

// Bit by bit, from the definition.
uint32_t reference(const uint8_t *data, size_t length) {
    uint32_t state = 0xffffffff;
    for (size_t i = 0; i < length; i++) {
        state ^= data[i];
        for (int bit = 0; bit < 8; bit++) state = (state >> 1) ^ ((state & 1) * 0x82f63b78u);
    }
    return ~state;
}

// RFC 3720, appendix B.4.
void rfc_3720_vectors(void **) {
    uint8_t data[32];
    std::memset(data, 0, 32);
    assert_int_equal(crc32c(data, 32), 0x8a9136aa);
    std::memset(data, 0xff, 32);
    assert_int_equal(crc32c(data, 32), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++) data[i] = i;
    assert_int_equal(crc32c(data, 32), 0x46dd794e);
    for (uint8_t i = 0; i < 32; i++) data[i] = uint8_t(31 - i);
    assert_int_equal(crc32c(data, 32), 0x113fdb5c);
    const uint8_t read_pdu[48] = {1, 0xc0, 0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0,
                                  0, 0,    0x14, 0,    0,    0, 0, 0, 4, 0, 0, 0, 0, 0x14,
                                  0, 0,    0,    0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 2};
    assert_int_equal(crc32c(read_pdu, 48), 0xd9963a56);
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(nullptr, 0), 0);
}

void kernels_equal_the_reference(void **) {
    std::mt19937 random(20260101);
    std::vector<uint8_t> data(4096 + 16);
    for (auto &byte : data) byte = uint8_t(random());
    for (const Crc32cKernel &kernel : crc32c_kernels()) {
        if (!kernel.usable()) {
            std::printf("not run: this processor has no %s\n", kernel.name);
            continue;
        }
        for (size_t length = 0; length <= 300; length++)
            for (size_t shift = 0; shift < 8; shift++)
                assert_int_equal(~kernel.update(0xffffffff, data.data() + shift, length),
                                 reference(data.data() + shift, length));
        assert_int_equal(~kernel.update(0xffffffff, data.data() + 3, 4096),
                         reference(data.data() + 3, 4096));
    }
}

void pieces_equal_the_whole(void **) {
    std::vector<uint8_t> data(777);
    std::mt19937 random(20260102);
    for (auto &byte : data) byte = uint8_t(random());
    const uint32_t whole = crc32c(data.data(), data.size());
    for (size_t cut = 0; cut <= data.size(); cut++)
        assert_int_equal(crc32c(data.data() + cut, data.size() - cut, crc32c(data.data(), cut)),
                         whole);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(rfc_3720_vectors),
                                cmocka_unit_test(kernels_equal_the_reference),
                                cmocka_unit_test(pieces_equal_the_whole)};
    return cmocka_run_group_tests_name("crc32c", tests, nullptr, nullptr);
}
