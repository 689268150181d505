// How the coordinator decides about the next generation of an elastic job.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/clock.h"
#include "cluster/control/reform_votes.h"

#include <cstring>

using namespace dtrain;
using namespace dtrain::cluster;
using wire::Moved, wire::ReformRequest;

namespace {

using Members = std::vector<int32_t>;

// A coordinator of four workers and a server, member 4.
struct Desk {
    Identity own;
    Membership state;
    Newcomers newcomers;
    ReformVotes votes{state, newcomers, own};
    Link links = 0;

    Desk() {
        own.workers = 4;
        own.servers = 1;
        own.generation = 6;
        state.peers.resize(5);
        for (int32_t m = 0; m < 4; m++) state.peers[size_t(m)].index = m;
        state.peers[4].role = 1;
    }
    void kill(int32_t member) {
        state.gone[member] = {1, member, false, "rank " + std::to_string(member) + " lost: cut",
                              false};
    }
    Link come(uint8_t role = 0) {
        wire::Join join;
        join.version_min = join.version_max = wire::control_version;
        join.self.role = role;
        join.self.pid = int32_t(++links);
        assert_int_equal(newcomers.add(links, "10.0.0.9", join, 0), DTRAIN_OK);
        return links;
    }
    ReformVotes::Answers ask(int32_t member, const Members &members, int32_t smallest = 1,
                             int32_t largest = 0, bool leaves = false, uint32_t attempt = 0) {
        return votes.request(member,
                             ReformRequest{8, members, attempt, second,
                                           "place of " + std::to_string(member), smallest, largest,
                                           leaves},
                             0);
    }
};

const Members all = {0, 1, 2, 3};

const Moved &only(const ReformVotes::Answers &answers, const Members &members) {
    assert_int_equal(answers.size(), 1);
    assert_true(answers[0].members == members);
    return answers[0].moved;
}

// The others are told of the first.
void one_is_the_first_to_ask(void **) {
    Desk desk;
    const auto is_asked = [&](uint32_t attempt) {
        return desk.votes.is_asked({8, all, attempt, second, "place", 1, 0, false});
    };
    assert_false(is_asked(0));
    desk.ask(2, all);
    assert_true(is_asked(0));
    assert_false(is_asked(1));
}

void expect_refusal(const ReformVotes::Answers &answers, Status status, const char *text) {
    assert_int_equal(answers.size(), 1);
    assert_int_equal(answers[0].moved.status, status);
    if (std::strstr(answers[0].moved.text.c_str(), text) == nullptr)
        print_error("%s lacks %s\n", answers[0].moved.text.c_str(), text), assert_true(false);
    assert_true(answers[0].taken.empty());
}

void all_that_live_and_newcomers(void **) {
    Desk desk;
    desk.kill(1);
    const Link worker = desk.come(), server = desk.come(1), other = desk.come();
    assert_true(desk.ask(3, {3, 1, 2, 0}).empty());
    assert_true(desk.ask(0, {3, 1, 2, 0}).empty());
    const ReformVotes::Answers answers = desk.ask(2, {3, 1, 2, 0});
    const Moved &moved = only(answers, {0, 2, 3});
    assert_int_equal(moved.status, DTRAIN_OK);
    assert_int_equal(moved.generation, 7);
    assert_true((moved.workers == Members{3, 2, 0, -1, -1})); // the group's order
    assert_true((moved.servers == Members{4, -1}));
    assert_string_equal(moved.place.c_str(), "place of 3");
    assert_true((moved.went == std::vector<std::string>{"rank 1 lost: cut"}));
    const std::vector<Newcomer> &taken = answers[0].taken; // workers first
    assert_int_equal(taken.size(), 3);
    assert_true(taken[0].link == worker && taken[1].link == other && taken[2].link == server);
    assert_int_equal(moved.came.size(), 3);
}

void a_member_that_dies_is_not_awaited(void **) {
    Desk desk;
    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all).empty());
    desk.kill(3);
    assert_true((only(desk.votes.look_again(), {0, 1, 2}).workers == Members{0, 1, 2}));
    // One that asked and died is not in it, either.
    for (int32_t m : {0, 1}) assert_true(desk.ask(m, all, 1, 0, false, 1).empty());
    desk.kill(0);
    assert_true(desk.votes.look_again().empty());
    assert_true((only(desk.ask(2, all, 1, 0, false, 1), {1, 2}).workers == Members{1, 2}));
}

void sizes(void **) {
    Desk desk;
    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all, 4, 5).empty());
    assert_true(desk.ask(3, all, 6).empty()); // the largest minimum: 6, but at most 5
    desk.come();
    assert_true(desk.votes.look_again().empty());
    expect_refusal(desk.votes.tick(second), DTRAIN_ERR_TIMEOUT,
                   "4 workers stay and 1 processes wait");

    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all, 5, 5, false, 1).empty());
    desk.come();
    const ReformVotes::Answers answers = desk.ask(3, all, 1, 0, false, 1);
    assert_true((only(answers, all).workers == Members{0, 1, 2, 3, -1}));
    assert_int_equal(answers[0].taken.size(), 1); // the other one goes on waiting

    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all, 1, 3, false, 2).empty());
    expect_refusal(desk.ask(3, all, 1, 3, false, 2), DTRAIN_ERR_LIMIT, "4 workers stay");
}

// A member that has heard nothing of a generation that others have formed asks again.
void who_missed_the_next_generation_is_shut_out(void **) {
    Desk desk;
    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all).empty());
    assert_int_equal(only(desk.ask(3, all), all).status, DTRAIN_OK);
    assert_true(desk.votes.decided());
    assert_true(desk.ask(1, all, 1, 0, false, 1).empty()); // the others may ask again as well
    desk.state.gone[2] = desk.state.left(2, true);
    expect_refusal(desk.votes.look_again(), DTRAIN_ERR_FENCED, "generation 7: rank 2");
    expect_refusal(desk.ask(3, all, 1, 0, false, 1), DTRAIN_ERR_FENCED, "without this process");
    expect_refusal(desk.ask(3, all, 1, 0, false, 2), DTRAIN_ERR_FENCED, "without this process");
    Desk other; // one that only left does not count
    other.state.gone[2] = other.state.left(2, false);
    for (int32_t m : {0, 1}) assert_true(other.ask(m, all).empty());
    assert_int_equal(only(other.ask(3, all), {0, 1, 3}).status, DTRAIN_OK);
}

void workers_leave(void **) {
    Desk desk;
    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all, 3, 0, m == 0).empty());
    const ReformVotes::Answers answers = desk.ask(3, all);
    const Moved &moved = only(answers, all); // the one that leaves is told, too
    assert_true((moved.workers == Members{1, 2, 3}));
    assert_string_equal(moved.place.c_str(), "place of 1");
    assert_true(moved.went.size() == 1 && moved.went[0].find("left") != std::string::npos);
    // Nobody is left to take newcomers in.
    desk.come();
    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all, 1, 0, true, 1).empty());
    const ReformVotes::Answers end = desk.ask(3, all, 1, 0, true, 1);
    assert_true(only(end, all).workers.empty() && end[0].taken.empty());
}

void refusals(void **) {
    Desk desk;
    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all).empty());
    expect_refusal(desk.votes.tick(second), DTRAIN_ERR_TIMEOUT, "still waiting for rank 3");
    assert_true(desk.ask(0, all, 1, 0, false, 1).empty());
    expect_refusal(desk.ask(1, {1, 0, 2, 3}, 1, 0, false, 1), DTRAIN_ERR_MISMATCH,
                   "rank 1 named other");
    expect_refusal(desk.ask(0, {0, 1}, 1, 0, false, 2), DTRAIN_ERR_INVALID, "rank 2");
}

// A member that asks again, perhaps at a new coordinator, gets the same answer.
void answers_are_kept(void **) {
    Desk desk;
    for (int32_t m : {0, 1, 2}) assert_true(desk.ask(m, all).empty());
    const Moved moved = only(desk.ask(3, all), all);
    assert_true(only(desk.ask(2, all), {2}).workers == moved.workers);
    Desk next;
    next.votes.remember(moved);
    assert_true(only(next.ask(1, all), {1}).workers == moved.workers);
}

void silent_newcomers_are_dropped(void **) {
    Desk desk;
    Pace pace;
    pace.timeout = second;
    const Link talks = desk.come(), silent = desk.come();
    assert_int_equal(desk.newcomers.next_deadline(pace), second);
    desk.newcomers.heard(talks, second / 2);
    assert_true(desk.newcomers.take_silent(pace, second - 1).empty());
    assert_true((desk.newcomers.take_silent(pace, second) == std::vector<Link>{silent}));
    assert_true(desk.newcomers.has(talks) && desk.newcomers.count() == 1);
    wire::Join old;
    old.version_min = old.version_max = wire::control_version + 1;
    assert_int_equal(desk.newcomers.add(9, "10.0.0.9", old, 0), DTRAIN_ERR_VERSION);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(one_is_the_first_to_ask),
        cmocka_unit_test(all_that_live_and_newcomers),
        cmocka_unit_test(a_member_that_dies_is_not_awaited),
        cmocka_unit_test(sizes),
        cmocka_unit_test(who_missed_the_next_generation_is_shut_out),
        cmocka_unit_test(workers_leave),
        cmocka_unit_test(refusals),
        cmocka_unit_test(answers_are_kept),
        cmocka_unit_test(silent_newcomers_are_dropped),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
