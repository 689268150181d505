// Numbers that nobody guesses: each is given once, and the host is asked for many at a time.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "common/secrets.h"
#include "rig.h"

#include <set>

namespace {

int asked = 0;

void no_number_comes_twice(void **) {
    dtrain::test::FakeHost fake;
    dtrain_tp_host_t counting = *fake.table();
    static void (*random)(void *, void *, size_t) = counting.random;
    counting.random = [](void *self, void *to, size_t len) {
        asked++;
        random(self, to, len);
    };
    const dtrain::tp::Host host(&counting);
    dtrain::tp::Secrets secrets(host);
    std::set<uint64_t> seen;
    constexpr int count = 1000;
    for (int i = 0; i < count; i++) assert_true(seen.insert(secrets.next()).second);
    assert_in_range(asked, 1, count / 10);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(no_number_comes_twice)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
