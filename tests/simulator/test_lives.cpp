// Whole jobs, from the C API to the sockets, live in a simulated world: ranks are killed, stopped
// and cut off at random.
// SPDX-License-Identifier: Apache-2.0
//
// DTRAIN_SEED, DTRAIN_SEEDS: the first seed (default 1), and how many; DTRAIN_TEST_SECONDS instead
// of the latter: for how long. DTRAIN_SIMULATOR_FENCES=1: every access to freed
// memory, or behind the end of a piece, ends a life.
#include "check.h"
#include "dtrain.h"
#include "job.h"
#include "life.h"
#include "temporary_folder.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using namespace dtrain::simulator;

namespace {

// The library would warn of a variable that it does not know.
uint64_t number(const char *name, uint64_t usual) {
    const char *text = getenv(name);
    const uint64_t out = text != nullptr ? strtoull(text, nullptr, 10) : usual;
    unsetenv(name);
    return out;
}

Outcome live_by(uint64_t seed, uint32_t masked_faults = 0) {
    TemporaryFolder folder;
    Plan plan(seed);
    plan.options.emplace_back("checkpoint.directory", folder.name);
    if (plan.has_timelines) plan.options.emplace_back("timeline", folder.file("%r.json"));
    if (plan.kind == Plan::Kind::elastic) plan.rendezvous = "file://" + folder.file("job");
    return live(
        seed, plan.processes(), [&](World &w) { set_up(w, plan, masked_faults); },
        [&](int process) {
            if (process >= plan.workers())
                run_server(plan, process);
            else if (plan.kind == Plan::Kind::fixed)
                run_fixed_rank(plan, process);
            else
                run_elastic_rank(plan, process);
        });
}

// The faults without which it fails as well are left out.
void explain(uint64_t seed, const Outcome &outcome) {
    const Plan plan(seed);
    uint32_t masked = 0;
    Outcome least = outcome;
    for (size_t i = 0; i < plan.faults.size(); i++) {
        const Outcome without = live_by(seed, masked | 1u << i);
        if (without.good) continue;
        masked |= 1u << i;
        least = without;
    }
    print_error("seed %llu: %s\n%s\n", static_cast<unsigned long long>(seed), plan.text().c_str(),
                outcome.text.c_str());
    if (masked != 0) print_error("without faults %#x: %s\n", masked, least.text.c_str());
}

void jobs_keep_their_promise(void **) {
    const uint64_t first = number("DTRAIN_SEED", 1), seconds = number("DTRAIN_TEST_SECONDS", 0),
                   most = number("DTRAIN_SEEDS", seconds > 0 ? UINT64_MAX : 60);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    const bool ends_at_the_first = number("DTRAIN_SIMULATOR_FIRST", 0) != 0;
    uint64_t failed = 0, steps = 0, ranks = 0, count = 0;
    int64_t lasted = 0;
    std::array<uint64_t, 64> ended{};
    for (; count < most && (seconds == 0 || std::chrono::steady_clock::now() < end); count++) {
        const uint64_t seed = first + count;
        const Outcome outcome = live_by(seed);
        steps += outcome.steps;
        lasted += outcome.lasted;
        ranks += uint64_t(Plan(seed).processes());
        for (size_t i = 0; i < ended.size(); i++) ended[i] += outcome.ended[i];
        if (outcome.good) continue;
        explain(seed, outcome);
        failed++;
        if (ends_at_the_first) break;
    }
    print_message("%llu lives of %llu ranks, %.1f s of their time, %llu calls\n",
                  static_cast<unsigned long long>(count), static_cast<unsigned long long>(ranks),
                  double(lasted) / second, static_cast<unsigned long long>(steps));
    for (size_t i = 0; i < ended.size(); i++)
        if (ended[i] > 0)
            print_message("  %s: %llu calls\n", dtrain_status_name(dtrain_status_t(-int(i))),
                          static_cast<unsigned long long>(ended[i]));
    assert_int_equal(failed, 0);
}

void a_seed_is_one_life(void **) {
    for (uint64_t seed : {1u, 2u, 3u}) {
        const Outcome once = live_by(seed), again = live_by(seed);
        assert_int_equal(once.steps, again.steps);
        assert_int_equal(once.trace, again.trace);
    }
}

// OpenSSL ends in a deadlock if what it initializes once lacks memory.
void prepare_openssl() {
    void *library = dlopen("libcrypto.so.3", RTLD_NOW);
    if (library == nullptr) return;
    if (void *clear = dlsym(library, "ERR_clear_error")) reinterpret_cast<void (*)()>(clear)();
}

} // namespace

// Touches memory that is not there, which the fences must see.
int touch(const char *what) {
    auto *const piece = static_cast<volatile char *>(malloc(100));
    piece[99] = 1;
    if (strcmp(what, "freed") == 0) free(const_cast<char *>(piece));
    const char seen = piece[strcmp(what, "behind") == 0 ? 112 : 99];
    printf("%d\n", seen);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--touch") == 0) return touch(argv[2]);
    prepare_openssl();
    tells_calls = number("DTRAIN_SIMULATOR_TELLS", 0) != 0;
    stops_for_debugger = number("DTRAIN_SIMULATOR_STOPS", 0) != 0;
    unsetenv("DTRAIN_SIMULATOR_FENCES"); // read at the first allocation
    const CMUnitTest tests[] = {cmocka_unit_test(jobs_keep_their_promise),
                                cmocka_unit_test(a_seed_is_one_life)};
    return cmocka_run_group_tests_name("lives", tests, nullptr, nullptr);
}
