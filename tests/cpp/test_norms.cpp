// dtrain.hpp: clipping by the norm of several arrays.
// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <array>
#include <cmath>

using namespace dtrain;

namespace {

void test_types_together(void **) {
    std::vector<float> x{3, 0};
    std::array<double, 1> y{4};
    REQUIRE(clip_by_global_norm({x, y}, 5.0) == 5 && x[0] == 3);
    REQUIRE(clip_by_global_norm({x, y}, 2.5) == 5 && x[0] == 1.5f && y[0] == 2);
    uint16_t halves[4] = {0x4000, 0x4000, 0x4000, 0x4000}; // 2
    REQUIRE(clip_by_global_norm({Output(halves, 4, DType::BF16)}, 2.0) == 4);
    REQUIRE(halves[0] == 0x3f80 && halves[3] == 0x3f80);
    REQUIRE(clip_by_global_norm({}, 1.0) == 0);
}

void test_refused(void **) {
    std::vector<float> x{3, 4}, lost{std::nanf("")};
    std::vector<int> integers{1};
    THROWS(InvalidError, "array 1", clip_by_global_norm({x, lost}, 1.0));
    THROWS(InvalidError, "array 1", clip_by_global_norm({x, integers}, 1.0));
    THROWS(InvalidError, "max_norm", clip_by_global_norm({x}, 0.0));
    REQUIRE(x[0] == 3);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(test_types_together),
                                cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
