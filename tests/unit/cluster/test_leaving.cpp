// The end of a job: its workers leave at about the same time, the coordinator among them, while its
// servers still look for the next one.
// SPDX-License-Identifier: Apache-2.0
//
// A failing seed is printed.
#include "check.h"

#include "simulation.h"

using namespace simulation;

namespace {

// "" or what is wrong. Nobody who stays is told that a worker was lost, or has to go.
std::string play(uint32_t seed) {
    const int32_t workers = 2 + int32_t(seed % 5), servers = 1 + int32_t(seed % 3);
    std::string wrong;
    std::vector<int> left(size_t(workers + servers));
    int64_t last = 0;
    Network net(seed, workers, servers, [&](int n, const wire::Message &message) {
        if (const auto *over = std::get_if<wire::Over>(&message))
            wrong = text("member %d: %s", n, over->text.c_str());
        const auto *gone = std::get_if<wire::Gone>(&message);
        if (gone == nullptr) return;
        if (!gone->left) wrong = text("member %d: %s", n, gone->text.c_str());
        left[size_t(n)]++;
        last = net.now();
    });
    for (int n = 0; n < net.size(); n++) net.at(net.draw(0, 50 * ms), [&net, n] { net.start(n); });
    net.run_until(second);
    const int64_t spread = std::array{2 * ms, 20 * ms, 300 * ms}[seed / 3 % 3];
    for (int n = 0; n < workers; n++)
        net.at(second + net.draw(0, spread), [&net, n] { net.leave(n); });
    net.run_until(10 * second);
    for (int n = workers; n < net.size() && wrong.empty(); n++)
        if (left[size_t(n)] != workers)
            wrong = text("member %d knows of %d that left", n, left[size_t(n)]);
    if (wrong.empty() && last > second + spread + 500 * ms)
        wrong = text("the last was known to have left after %lld ms",
                     static_cast<long long>((last - second) / ms));
    return wrong.empty() ? net.broken_message : wrong;
}

void nobody_is_lost(void **) {
    constexpr uint32_t seeds = 2000;
    size_t failures = 0;
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        const std::string wrong = play(seed);
        if (!wrong.empty() && failures++ < 10) print_error("seed %u: %s\n", seed, wrong.c_str());
    }
    print_message("%u schedules, %zu failures\n", seeds, failures);
    assert_int_equal(failures, 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(nobody_is_lost)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
