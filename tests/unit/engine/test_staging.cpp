// Buffers for pieces: how many there are, and what becomes of them when pieces grow.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "engine/staging.h"

#include <cstring>
#include <set>

using dtrain::engine::Staging;

namespace {

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB;

void few_are_made_and_used_again(void **) {
    Staging staging({}, 256 * KiB);
    std::set<void *> taken;
    while (void *memory = staging.take(100, false)) taken.insert(memory);
    assert_int_equal(taken.size(), 8); // 2 MiB
    void *needed = staging.take(100, true);
    assert_non_null(needed);
    staging.give_back(needed); // too many: it goes
    assert_null(staging.take(100, false));
    for (void *memory : taken) staging.give_back(memory);
    for (size_t i = 0; i < taken.size(); i++) assert_true(taken.count(staging.take(1, false)));
    assert_null(staging.take(1, false));
    for (void *memory : taken) staging.give_back(memory);
}

void pieces_may_grow_while_buffers_are_out(void **) {
    Staging staging({}, 256 * KiB);
    void *small = staging.take(256 * KiB, false), *own = staging.take(MiB, false);
    std::memset(own, 1, MiB);
    staging.widen(MiB);
    void *wide = staging.take(MiB, false);
    std::memset(small, 2, 256 * KiB);
    std::memset(wide, 3, MiB);
    assert_null(staging.take(MiB, false)); // two buffers at the least, one of which is small yet
    staging.give_back(small);
    staging.give_back(own);
    void *second = staging.take(MiB, false);
    assert_non_null(second);
    assert_ptr_not_equal(second, wide);
    std::memset(second, 4, MiB);
    staging.widen(KiB); // no change
    staging.give_back(wide);
    assert_ptr_equal(staging.take(1, false), wide);
    staging.give_back(wide);
    staging.give_back(second);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(few_are_made_and_used_again),
                                cmocka_unit_test(pieces_may_grow_while_buffers_are_out)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
