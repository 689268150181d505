// One job after another at the same address, its members leaving and coming at any time.
// SPDX-License-Identifier: Apache-2.0
//
// A failing seed is printed.
#include "check.h"

#include "simulation.h"

using namespace simulation;

namespace {

class Jobs {
  public:
    Jobs(uint32_t seed, int32_t workers, int32_t servers)
        : net_(seed, workers, servers, [this](int n, const wire::Message &m) { report(n, m); }),
          seen_(size_t(net_.size())) {}

    void start() {
        for (int n = 0; n < net_.size(); n++)
            net_.at(net_.draw(0, 50 * ms), [this, n] { net_.start(n); });
        net_.run_until(second);
    }
    // Everybody leaves within `spread` and joins the next job at most 20 ms later.
    void next(int64_t spread) {
        for (int n = 0; n < net_.size(); n++) {
            int64_t when = net_.now() + net_.draw(0, spread);
            net_.at(when, [this, n] { net_.leave(n); });
            net_.at(when + net_.draw(1, 20 * ms), [this, n] { net_.restart(n); });
        }
        net_.run_until(net_.now() + spread + 5 * second);
    }
    // "" or what is wrong, after `count` jobs.
    std::string wrong(uint32_t seed, size_t count) const {
        for (int n = 0; n < net_.size(); n++) {
            const Seen &seen = seen_[size_t(n)];
            if (!seen.over.empty()) return text("member %d: %s", n, seen.over.c_str());
            if (seen.jobs.size() != count)
                return text("member %d: %zu jobs of %zu", n, seen.jobs.size(), count);
            for (size_t i = 0; i < count; i++)
                if (seen.jobs[i] != seed + i) return text("member %d: job %zu is another's", n, i);
        }
        return net_.broken_message;
    }
    Network &net() { return net_; }
    const std::string &over(int n) const { return seen_[size_t(n)].over; }

  private:
    struct Seen {
        std::vector<uint64_t> jobs;
        std::string over;
    };
    void report(int n, const wire::Message &message) {
        Seen &seen = seen_[size_t(n)];
        if (const auto *roster = std::get_if<wire::Roster>(&message))
            seen.jobs.push_back(roster->job);
        else if (const auto *over = std::get_if<wire::Over>(&message))
            seen.over = text("%s: %s", status_name(over->status), over->text.c_str());
    }
    Network net_;
    std::vector<Seen> seen_;
};

void whenever_they_leave(void **) {
    constexpr uint32_t seeds = 500;
    size_t failures = 0;
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        Jobs jobs(seed, 2 + int32_t(seed % 5), int32_t(seed % 3));
        jobs.start();
        jobs.next(seed % 2 == 0 ? 2 * ms : 800 * ms);
        jobs.next(50 * ms);
        std::string wrong = jobs.wrong(seed, 3);
        if (!wrong.empty() && failures++ < 10) print_error("seed %u: %s\n", seed, wrong.c_str());
    }
    assert_int_equal(failures, 0);
}

// A process in the place of one that was lost is told so, and the job goes on.
void in_place_of_a_lost_one(void **) {
    Jobs jobs(1, 3, 0);
    jobs.start();
    jobs.net().crash(1);
    jobs.net().run_until(jobs.net().now() + second);
    jobs.net().restart(1);
    jobs.net().run_until(jobs.net().now() + second);
    assert_non_null(strstr(jobs.over(1).c_str(), "DTRAIN_ERR_STATE: a job goes on here without"));
    assert_string_equal(jobs.over(0).c_str(), "");
    assert_string_equal(jobs.over(2).c_str(), "");
}

// The others never leave: it says after its timeout what it waited for.
void others_stay(void **) {
    Jobs jobs(1, 3, 0);
    jobs.start();
    jobs.net().leave(2);
    jobs.net().run_until(jobs.net().now() + 10 * ms);
    jobs.net().restart(2);
    jobs.net().run_until(jobs.net().now() + join_timeout + second);
    assert_non_null(strstr(jobs.over(2).c_str(), "DTRAIN_ERR_TIMEOUT: joining the job timed out"));
    assert_non_null(strstr(jobs.over(2).c_str(), "has not ended (2 of 3 members left)"));
    assert_string_equal(jobs.over(0).c_str(), "");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(whenever_they_leave),
        cmocka_unit_test(in_place_of_a_lost_one),
        cmocka_unit_test(others_stay),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
