// copy() and copy_stream(): every byte, and no other.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <cstring>
#include <vector>

#include "device/kernels.h"

namespace {

using namespace dtrain::device;

void check_copy(void (*copy_function)(void *, const void *, uint64_t)) {
    constexpr uint64_t margin = 64;
    constexpr uint64_t sizes[] = {0,    1,    63,   64,     65,     1023,   1024,
                                  1025, 1088, 4103, 262143, 262144, 262209, 300001};
    for (uint64_t size : sizes)
        for (uint64_t to : {0, 1, 63})
            for (uint64_t from : {0, 1, 32}) {
                std::vector<unsigned char> src(from + size), dst(margin + to + size + margin, 0xa5);
                for (uint64_t i = 0; i < src.size(); i++)
                    src[i] = static_cast<unsigned char>(i * 7 + i / 251);
                std::vector<unsigned char> expected = dst;
                if (size > 0) std::memcpy(&expected[margin + to], &src[from], size);
                copy_function(&dst[margin + to], src.data() + from, size);
                assert_true(dst == expected);
            }
}

void copies(void **) { check_copy(copy); }
void streams(void **) { check_copy(copy_stream); }

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(copies), cmocka_unit_test(streams)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
