// Copies past the caches, and when they are chosen.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "common/shared_copy.h"

#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace dtrain::tp;

// Every beginning in a line, and lengths around whole ones; the bytes around them stay.
void all_bytes_arrive(void **) {
    constexpr size_t around = 128, most = 1000;
    std::vector<uint8_t> from(most + 64), to(most + 2 * around);
    std::iota(from.begin(), from.end(), uint8_t{1});
    for (size_t begin = 0; begin < 64; begin++)
        for (const size_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 200, 767, 768, 1000}) {
            const uint8_t *const source = from.data() + begin % 17;
            std::fill(to.begin(), to.end(), uint8_t{0xee});
            copy_stream(to.data() + begin, source, bytes);
            assert_memory_equal(to.data() + begin, source, bytes);
            for (size_t i = 0; i < begin; i++) assert_int_equal(to[i], 0xee);
            for (size_t i = begin + bytes; i < to.size(); i++) assert_int_equal(to[i], 0xee);
        }
}

void either_way_copies(void **) {
    std::mt19937_64 random(7);
    std::vector<uint8_t> from(300'000), to(from.size());
    for (const Distance distance : {Distance::measured, Distance::near, Distance::far}) {
        SharedCopy copies(distance);
        for (int i = 0; i < 200; i++) { // measured now and then, which must leave no trace
            for (size_t at = 0; at < from.size(); at += 97) from[at] = uint8_t(random());
            const size_t begin = random() % 1000, bytes = 1 + random() % (from.size() - begin);
            copies.copy(to.data() + begin, from.data() + begin, bytes);
            assert_memory_equal(to.data() + begin, from.data() + begin, bytes);
        }
    }
}

void wanted_distances(void **) {
    char line[1024];
    assert_false(SharedCopy(Distance::near).streams(line, sizeof line));
    assert_false(SharedCopy(Distance::near).is_far());
#ifdef __x86_64__
    assert_true(SharedCopy(Distance::far).streams(line, sizeof line));
    assert_true(SharedCopy(Distance::far).is_far());
#endif
    assert_false(SharedCopy(Distance::far).streams(line, 64)); // the reader would wait for memory
    assert_true(distance_named("near") == Distance::near);
    assert_true(distance_named("far") == Distance::far);
    assert_true(distance_named("auto") == Distance::measured);
}

void distances(void **) {
    Remoteness reader;
    const auto add = [&](std::initializer_list<int64_t> times) {
        for (const int64_t ns : times) reader.add(ns);
        return reader.is_far();
    };
    assert_false(reader.is_far());
    assert_false(add({120, 110, 130}));
    assert_false(add({350}));           // one says nothing
    assert_true(add({370}));            // two do
    assert_true(add({9000, 20, 2000})); // a page fault, and lines that nobody has read
    assert_false(add({120, 120}));
    assert_false(add({90'000, 1201, 1'000'000'000}));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_arrive),
        cmocka_unit_test(either_way_copies),
        cmocka_unit_test(wanted_distances),
        cmocka_unit_test(distances),
    };
    return cmocka_run_group_tests_name("copies for another core", tests, nullptr, nullptr);
}
