// Processes that do not run for a while (stopped, under a debugger, on a machine that has no time
// for them): a pause is not a death.
// SPDX-License-Identifier: Apache-2.0
//
// A failing seed is printed.
#include "check.h"

#include "simulation.h"

using namespace simulation;

namespace {

// What the program of each rank is told.
struct Told {
    bool joined = false, fenced = false;
    std::set<int32_t> lost;
    std::string text; // the last one
};

class Job {
  public:
    Job(uint32_t seed, int32_t size, int64_t patience, uint32_t cores = 0)
        : net_(
              seed, size, 0, [this](int n, const wire::Message &message) { hear(n, message); },
              [&](Settings &s) {
                  s.heartbeat_timeout = patience;
                  s.join_deadline = 300 * second;
                  s.self.cores = 1000 * cores;
              }),
          told_(size_t(size)) {}

    void start_all(int64_t spread) {
        for (int n = 0; n < net_.size(); n++)
            net_.at(net_.draw(0, spread), [this, n] { net_.start(n); });
    }
    void pause(int n, int64_t from, int64_t length) {
        net_.at(from, [this, n] { net_.stop(n); });
        net_.at(from + length, [this, n] { net_.resume(n); });
    }
    Network &net() { return net_; }
    const Told &told(int n) const { return told_[size_t(n)]; }

    // "" or what is wrong: nobody may be told anything but that `paused` is lost.
    std::string check(int32_t paused) const {
        for (int n = 0; n < net_.size(); n++) {
            const Told &told = told_[size_t(n)];
            std::set<int32_t> lost;
            if (paused >= 0 && n != paused) lost = {paused};
            if (!told.joined) return text("rank %d did not join", n);
            if (told.lost == lost && told.fenced == (n == paused)) continue;
            return text("rank %d was told of %zu that are lost, fenced: %d; %s", n,
                        told.lost.size(), told.fenced, told.text.c_str());
        }
        return net_.broken_message;
    }

  private:
    void hear(int n, const wire::Message &message) {
        Told &told = told_[size_t(n)];
        if (std::holds_alternative<wire::Roster>(message)) told.joined = true;
        if (const auto *gone = std::get_if<wire::Gone>(&message)) {
            told.lost.insert(gone->member);
            told.text = gone->text;
        } else if (const auto *over = std::get_if<wire::Over>(&message)) {
            told.fenced = over->status == DTRAIN_ERR_FENCED;
            told.text = over->text;
        }
    }

    Network net_;
    std::vector<Told> told_;
};

constexpr uint32_t seeds = 400;

void for_each_seed(const std::function<std::string(uint32_t)> &play) {
    size_t failures = 0;
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        const std::string wrong = play(seed);
        if (!wrong.empty() && failures++ < 5) print_error("seed %u: %s\n", seed, wrong.c_str());
    }
    assert_int_equal(failures, 0);
}

// Of any ranks at any time, as long as their silence is shorter than the timeout.
std::string play_short_pauses(uint32_t seed) {
    Job job(seed, 2 + int32_t(seed % 9), 5 * second);
    job.start_all(50 * ms);
    for (int n = 0; n < job.net().size(); n++)
        for (int64_t at = job.net().draw(0, 5 * second); at < 60 * second;) {
            const int64_t length = job.net().draw(10 * ms, 4500 * ms);
            if (job.net().draw(0, 2) != 0) job.pause(n, at, length);
            at += length + job.net().draw(second, 8 * second);
        }
    job.net().run_until(90 * second);
    return job.check(-1);
}

// A member that is silent for too long is told that it is fenced, and by nobody else's fault; the
// others are told of this one only, with the option that decides.
std::string play_a_long_pause(uint32_t seed) {
    const int32_t size = 2 + int32_t(seed % 7), paused = seed % 2 == 0 ? 0 : int32_t(seed) % size;
    Job job(seed, size, 5 * second);
    job.start_all(50 * ms);
    job.pause(paused, 20 * second + job.net().draw(0, second), job.net().draw(7, 30) * second);
    job.net().run_until(80 * second);
    std::string wrong = job.check(paused);
    for (int n = 0; n < size && wrong.empty(); n++)
        if (job.told(n).text.find("heartbeat.timeout") == std::string::npos)
            wrong = text("rank %d is not told the option: %s", n, job.told(n).text.c_str());
    if (wrong.empty() && paused == 0 && job.told(0).text.find("did not run") == std::string::npos)
        wrong = text("rank 0 is not told why: %s", job.told(0).text.c_str());
    return wrong;
}

// Rank 0 waits for the last rank and does not run for a while. The others wait for it as long as
// the most crowded job would, and not for their whole join.timeout if its host has lost its power.
std::string play_rank_0_pauses_while_others_join(uint32_t seed) {
    const int32_t size = 3 + int32_t(seed % 6);
    const bool for_good = seed % 2 == 0;
    Job job(seed, size, 5 * second);
    Network &net = job.net();
    for (int n = 0; n + 1 < size; n++) net.at(net.draw(0, 50 * ms), [&net, n] { net.start(n); });
    const int64_t at = net.draw(100 * ms, 10 * second);
    job.pause(0, at, for_good ? 600 * second : net.draw(10 * ms, 18 * second));
    net.at(at + 20 * second, [&net, size] { net.start(size - 1); });
    net.run_until(at + 22 * second);
    for (int n = 1; for_good && n + 1 < size; n++)
        if (job.told(n).text.find("joining the job: rank 0 was silent for") == std::string::npos)
            return text("rank %d does not give up: %s", n, job.told(n).text.c_str());
    if (for_good) return net.broken_message;
    net.run_until(at + 60 * second);
    return job.check(-1);
}

// The whole machine stands still: a virtual machine that is suspended.
std::string play_suspended_together(uint32_t seed) {
    Job job(seed, 2 + int32_t(seed % 7), 5 * second);
    job.start_all(50 * ms);
    const int64_t at = 10 * second, length = job.net().draw(1, 100) * second;
    for (int n = 0; n < job.net().size(); n++)
        job.pause(n, at + job.net().draw(0, 20 * ms), length + job.net().draw(0, 300 * ms));
    job.net().run_until(at + length + 60 * second);
    return job.check(-1);
}

// The coordinator goes while a member does not run; the others wait for that one for as long as
// they do, work on without it, and end. Nobody is left to tell it.
std::string play_nobody_left_to_tell(uint32_t seed) {
    const int32_t size = 3 + int32_t(seed % 6), paused = 1 + int32_t(seed) % (size - 1);
    const bool joining = seed % 5 == 0;
    Job job(seed, size, 5 * second);
    Network &net = job.net();
    job.start_all(joining ? 0 : 50 * ms);
    const int64_t from = joining ? net.draw(0, 5 * ms) : 20 * second + net.draw(0, second);
    const int64_t gone = from + second + net.draw(0, second);
    job.pause(paused, from, net.draw(20, 40) * second);
    if (seed % 3 == 0)
        net.at(gone, [&] { net.crash(0); });
    else
        net.at(gone, [&] { net.leave(0); });
    for (int n = 1; n < size; n++)
        if (n != paused) net.at(gone + 12 * second + net.draw(0, second), [&, n] { net.leave(n); });
    net.run_until(from + 80 * second);
    const Told &told = job.told(paused);
    if (joining && !told.joined) return net.broken_message; // it had not come: nobody waits for it
    if (!told.fenced)
        return text("rank %d of %d goes on alone: %s", paused, size, told.text.c_str());
    return net.broken_message;
}

// The coordinator does not run; the others depose it, work on, and end. What some have sent to it
// is lost, so for it they have just ended.
std::string play_deposed_by_those_who_ended(uint32_t seed) {
    const int32_t size = 3 + int32_t(seed % 6); // of two, each goes on
    Job job(seed, size, 5 * second);
    Network &net = job.net();
    job.start_all(50 * ms);
    const int64_t from = 20 * second + net.draw(0, second), end = from + 14 * second;
    job.pause(0, from, net.draw(20, 25) * second);
    for (int n = 1; n < size; n++) {
        const bool silenced = seed % 5 == 0 || net.draw(0, 2) == 0;
        net.at(from + 2 * second, [&, n] { net.cut(n, 0); });
        net.at(end + net.draw(0, 200 * ms), [&, n, silenced] {
            if (silenced)
                net.crash(n, true);
            else
                net.leave(n);
        });
        net.at(end + 12 * second, [&, n] { net.heal(n, 0); });
    }
    net.run_until(from + 80 * second);
    const Told &told = job.told(0);
    if (!told.fenced) return text("the first of %d goes on alone: %s", size, told.text.c_str());
    return net.broken_message;
}

// The same for a member that no other but the coordinator could reach.
std::string play_cut_off_meanwhile(uint32_t seed) {
    const int32_t size = 4 + int32_t(seed % 5), cut = 1 + int32_t(seed) % (size - 1);
    Job job(seed, size, 5 * second);
    Network &net = job.net();
    job.start_all(50 * ms);
    const int64_t gone = 20 * second + net.draw(0, second);
    for (int n = 1; n < size; n++)
        if (n != cut) {
            net.at(gone - second, [&, n] { net.cut(n, cut), net.cut(cut, n); });
            net.at(gone + 12 * second + net.draw(0, 500 * ms), [&, n] { net.leave(n); });
            net.at(gone + 13 * second, [&, n] { net.heal(n, cut), net.heal(cut, n); });
        }
    net.at(gone, [&] { net.leave(0); });
    net.run_until(gone + 80 * second);
    const Told &told = job.told(cut);
    if (!told.fenced) return text("rank %d of %d goes on alone: %s", cut, size, told.text.c_str());
    return net.broken_message;
}

// The same for a member that was cut off from the coordinator alone, and allows it twice the time
// since it joins, or has just joined. It hears of the coordinator's end, and perhaps who is in the
// job, when all is over.
std::string play_cut_off_while_it_joins(uint32_t seed) {
    const int32_t size = 3 + int32_t(seed % 6), cut = 1 + int32_t(seed) % (size - 1);
    Job job(seed, size, 5 * second);
    Network &net = job.net();
    job.start_all(2 * ms);
    const int64_t from = net.draw(0, 20 * ms), gone = from + net.draw(5 * ms, 500 * ms);
    net.at(from, [&] { net.cut(0, cut), net.cut(cut, 0); });
    net.at(gone, [&] { net.crash(0); });
    for (int n = 1; n < size; n++)
        if (n != cut) net.at(gone + 6 * second + net.draw(0, second), [&, n] { net.leave(n); });
    net.at(gone + 7 * second + net.draw(0, 2 * second), [&] { net.heal(0, cut); });
    net.run_until(gone + 80 * second);
    const Told &told = job.told(cut);
    const bool all_joined = job.told(cut == 1 ? 2 : 1).joined; // else there was no job yet
    if (all_joined && told.joined && !told.fenced)
        return text("rank %d of %d goes on alone: %s", cut, size, told.text.c_str());
    return net.broken_message;
}

// The same within the time for which the others wait: the last one may go on.
std::string play_last_after_a_short_pause(uint32_t seed) {
    const int32_t size = 3 + int32_t(seed % 6), paused = 1 + int32_t(seed) % (size - 1);
    Job job(seed, size, 5 * second);
    Network &net = job.net();
    job.start_all(50 * ms);
    const int64_t from = 20 * second + net.draw(0, second);
    job.pause(paused, from, 100 * ms + net.draw(0, 3 * second));
    for (int n = 0; n < size; n++)
        if (n != paused) net.at(from + net.draw(0, 100 * ms), [&, n] { net.leave(n); });
    net.run_until(from + 60 * second);
    const Told &told = job.told(paused);
    if (told.fenced || told.lost.size() != size_t(size) - 1)
        return text("rank %d of %d knows of %zu that left: %s", paused, size, told.lost.size(),
                    told.text.c_str());
    return net.broken_message;
}

// Rank 2 has deposed a coordinator that did not run, and rank 1, which has not come in by then,
// cannot know why rank 2 is lost to it.
void who_did_not_run_is_named(void **) {
    Job job(1, 3, 5 * second);
    Network &net = job.net();
    net.at(0, [&] { net.start(0), net.start(1); });
    net.at(second, [&] { net.cut(0, 1); });
    net.at(2 * second, [&] { net.start(2); });
    job.pause(0, 2500 * ms, 15 * second);
    net.at(17 * second, [&] { net.heal(0, 1); });
    net.run_until(40 * second);
    const Told &told = job.told(1);
    assert_true(job.told(2).fenced && told.lost == std::set<int32_t>{2});
    assert_non_null(strstr(told.text.c_str(), "heard nothing from the coordinator rank 0 "));
    assert_non_null(strstr(told.text.c_str(), ", which did not run for 15"));
    assert_string_equal(net.broken_message.c_str(), "");
}

void short_pauses_end_nothing(void **) { for_each_seed(play_short_pauses); }
void rank_0_pauses_while_others_join(void **) {
    for_each_seed(play_rank_0_pauses_while_others_join);
}
void a_long_pause_fences_the_paused(void **) { for_each_seed(play_a_long_pause); }
void nobody_left_to_tell(void **) { for_each_seed(play_nobody_left_to_tell); }
void deposed_by_those_who_ended(void **) { for_each_seed(play_deposed_by_those_who_ended); }
void cut_off_meanwhile(void **) { for_each_seed(play_cut_off_meanwhile); }
void cut_off_while_it_joins(void **) { for_each_seed(play_cut_off_while_it_joins); }
void last_after_a_short_pause(void **) { for_each_seed(play_last_after_a_short_pause); }
void suspended_together(void **) { for_each_seed(play_suspended_together); }

// On two cores: each rank runs now and then only.
void many_start_slowly(void **) {
    constexpr int size = 512;
    Job job(7, size, 5 * second, 2);
    job.start_all(4 * second);
    for (int n = 0; n < size; n++)
        for (int64_t at = job.net().draw(0, 2 * second); at < 60 * second;) {
            const int64_t length = job.net().draw(second, 9 * second);
            job.pause(n, at, length);
            at += length + job.net().draw(1 * ms, 100 * ms);
        }
    job.net().run_until(100 * second);
    const std::string wrong = job.check(-1);
    assert_string_equal(wrong.c_str(), "");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(short_pauses_end_nothing),
        cmocka_unit_test(a_long_pause_fences_the_paused),
        cmocka_unit_test(rank_0_pauses_while_others_join),
        cmocka_unit_test(nobody_left_to_tell),
        cmocka_unit_test(who_did_not_run_is_named),
        cmocka_unit_test(deposed_by_those_who_ended),
        cmocka_unit_test(cut_off_meanwhile),
        cmocka_unit_test(cut_off_while_it_joins),
        cmocka_unit_test(last_after_a_short_pause),
        cmocka_unit_test(suspended_together),
        cmocka_unit_test(many_start_slowly),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
