// A small job in which each allocation fails in turn, once, and from then on: every call ends, with
// a named error or well; no process ends; everything can be destroyed, and is. DTRAIN_TEST_ALL=1:
// every allocation; else as many as there is time for, chosen by DTRAIN_TEST_SEED.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "contract/failing_memory.h"
#include "contract/small_job.h"
#include "temporary_folder.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <vector>

namespace {

using small_job::Exchange;
using small_job::Rank;
using small_job::Setting;

constexpr int64_t for_ever = INT64_MAX - 1;
constexpr int64_t forgiven = 8; // pieces that libraries keep, and made later or earlier
constexpr int at_once = 2;
constexpr unsigned patience_s = 120; // of one run, on a busy machine

struct Findings { // of one run, in memory of parent and child
    int64_t calls, living;
    dtrain_status_t status[small_job::size];
    char text[small_job::size][640];
};

// In a process of its own.
void run_job(const Setting *settings, int64_t first, int64_t last, Findings &found) {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, SIG_DFL);
    alarm(patience_s);
    auto exchange = std::make_unique<Exchange>();
    std::unique_ptr<Rank> ranks[small_job::size];
    std::thread threads[small_job::size];
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    for (int r = 0; r < small_job::size; r++) {
        ranks[r] = std::make_unique<Rank>(*exchange, r, settings);
        ranks[r]->before_last_try = failing_memory::succeed;
        threads[r] = std::thread([&, r] {
            ready++;
            while (!go) sched_yield();
            ranks[r]->run();
        });
    }
    while (ready < small_job::size) sched_yield();
    failing_memory::begin(first, last);
    go = true;
    for (std::thread &thread : threads) thread.join();
    found.calls = failing_memory::calls;
    failing_memory::end();
    found.living = failing_memory::living.count;
    for (int r = 0; r < small_job::size; r++) {
        found.status[r] = ranks[r]->first();
        std::snprintf(found.text[r], sizeof found.text[r], "%.100s: %s", ranks[r]->what(),
                      ranks[r]->text());
    }
}

class Runs {
  public:
    explicit Runs(const char *transports) {
        void *memory = mmap(nullptr, sizeof(Findings) * (at_once + 1), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(memory != MAP_FAILED);
        found_ = static_cast<Findings *>(memory);
        const Setting settings[] = {{"transports", transports},
                                    {"tcp.interface", "lo"},
                                    {"join.timeout", "20s"},
                                    {"op.timeout", "5s"},
                                    {"checkpoint.directory", folder_.name.c_str()},
                                    {"checkpoint.keep", "0"},
                                    {"log.level", "error"},
                                    {nullptr, nullptr}};
        std::copy(std::begin(settings), std::end(settings), settings_);
        start(at_once, -1, -1);
        assert_int_equal(wait_for(0), 0);
        normal_ = found_[at_once];
        for (int r = 0; r < small_job::size; r++) {
            if (normal_.status[r] != DTRAIN_OK) print_message("rank %d: %s\n", r, normal_.text[r]);
            assert_int_equal(normal_.status[r], DTRAIN_OK);
        }
        print_message("%s: %lld allocations, %lld pieces left\n", transports,
                      (long long)normal_.calls, (long long)normal_.living);
    }
    ~Runs() { munmap(found_, sizeof(Findings) * (at_once + 1)); }

    int64_t calls() const { return normal_.calls; }
    int64_t bad() const { return bad_; }

    void add(int64_t n, bool once) {
        int place = 0;
        while (place < at_once && running_[place] != 0) place++;
        if (place == at_once) place = finish_one();
        which_[place] = n;
        once_[place] = once;
        start(place, n, once ? n : for_ever);
    }
    // Without a process of its own.
    void here(int64_t n) { run_job(settings_, n, for_ever, found_[0]); }
    void finish() {
        for (int i = 0; i < at_once; i++)
            if (running_[i] != 0) finish_one();
    }

  private:
    void start(int place, int64_t first, int64_t last) {
        std::fflush(nullptr);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            if (freopen("/dev/null", "w", stderr) == nullptr) _exit(9); // its log
            run_job(settings_, first, last, found_[place]);
            _exit(0);
        }
        running_[place < at_once ? place : 0] = child;
    }
    int wait_for(int place) {
        int status = -1;
        assert_int_equal(waitpid(running_[place], &status, 0), running_[place]);
        running_[place] = 0;
        return status;
    }
    int finish_one() {
        int status = -1, place = 0;
        const pid_t child = wait(&status);
        assert_true(child > 0);
        while (running_[place] != child) place++;
        running_[place] = 0;
        judge(place, status);
        return place;
    }
    void judge(int place, int status) {
        const Findings &its = found_[place];
        const char *wrong = nullptr;
        if (WIFSIGNALED(status))
            wrong = WTERMSIG(status) == SIGALRM ? "it hung" : strsignal(WTERMSIG(status));
        else if (status != 0)
            wrong = "it ended";
        else if (std::count(std::begin(its.status), std::end(its.status), DTRAIN_ERR_INTERNAL) > 0)
            wrong = "an internal error";
        else if (its.living > normal_.living + forgiven)
            wrong = "something is left";
        if (wrong == nullptr) return;
        bad_++;
        print_message("allocation %lld failed %s: %s\n", (long long)which_[place],
                      once_[place] ? "once" : "and all that followed", wrong);
        if (status != 0) return;
        print_message("  %lld pieces left; rank 0: %s; rank 1: %s\n", (long long)its.living,
                      its.text[0], its.text[1]);
    }

    TemporaryFolder folder_;
    Setting settings_[9] = {};
    Findings *found_, normal_{};
    pid_t running_[at_once] = {};
    int64_t which_[at_once] = {}, bad_ = 0;
    bool once_[at_once] = {};
};

void each_allocation_fails(const char *transports) {
    const char *seed_text = getenv("DTRAIN_TEST_SEED");
    const auto seed = uint64_t(seed_text != nullptr ? atoll(seed_text) : 1);
    const bool all = getenv("DTRAIN_TEST_ALL") != nullptr;
    const time_t until = time(nullptr) + 8;
    Runs runs(transports);
    if (const char *point = getenv("DTRAIN_TEST_POINT")) return runs.here(atoll(point));
    std::vector<int64_t> points(static_cast<size_t>(2 * runs.calls()));
    for (size_t i = 0; i < points.size(); i++) points[i] = int64_t(i);
    if (!all) std::shuffle(points.begin(), points.end(), std::mt19937_64(seed));
    size_t done = 0;
    for (; done < points.size() && (all || time(nullptr) < until); done++)
        runs.add(points[done] / 2, points[done] % 2 == 0);
    runs.finish();
    print_message("%zu of %zu runs (DTRAIN_TEST_SEED=%llu), %lld bad\n", done, points.size(),
                  (unsigned long long)seed, (long long)runs.bad());
    assert_int_equal(runs.bad(), 0);
}

void over_shm(void **) { each_allocation_fails("shm,tcp"); }
void over_tcp(void **) { each_allocation_fails("tcp"); }

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(over_shm), cmocka_unit_test(over_tcp)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
