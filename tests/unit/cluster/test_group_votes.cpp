// How the coordinator decides about groups, and how members choose the tag ids that they ask with.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/clock.h"
#include "cluster/control/group_attempt.h"
#include "cluster/control/group_votes.h"

#include <cstring>

using namespace dtrain;
using namespace dtrain::cluster;
using wire::GroupKind, wire::GroupReply, wire::GroupRequest;

namespace {

using Members = std::vector<int32_t>;

// A coordinator of eight workers, and their requests, which hold tag 7 unless a test says
// otherwise.
struct Desk {
    Membership state;
    uint64_t uid = 100;
    uint32_t serial = 0;
    GroupVotes votes{state, [this] { return uid++; }, 8};

    Desk() { state.peers.resize(8); }
    void kill(int32_t member) {
        state.gone[member] = {1, member, false, "rank " + std::to_string(member) + " lost: cut",
                              false};
    }
    GroupRequest wish(GroupKind kind, const Members &members, int32_t user_tag = 0,
                      int32_t held = 7) {
        GroupRequest request;
        request.kind = kind;
        request.group = 8;
        request.members = members;
        request.timeout_ns = second;
        request.serial = ++serial;
        request.user_tag = user_tag;
        request.held = held;
        return request;
    }
    GroupVotes::Answers ask(int32_t member, const GroupRequest &request, int64_t now = 0) {
        return votes.request(member, request, now);
    }
};

void expect_failure(const GroupVotes::Answers &answers, Status status, const Members &to,
                    const char *text) {
    assert_int_equal(answers.size(), 1);
    assert_true(answers[0].to == to && answers[0].reply.members == to);
    assert_int_equal(answers[0].reply.status, status);
    if (std::strstr(answers[0].reply.text.c_str(), text) == nullptr)
        print_error("%s lacks %s\n", answers[0].reply.text.c_str(), text), assert_true(false);
}

void the_living_make_a_smaller_group(void **) {
    Desk desk;
    const GroupRequest first = desk.wish(GroupKind::shrink, {3, 1, 0});
    assert_false(desk.votes.is_asked(first));
    assert_true(desk.ask(3, first).empty());
    const GroupRequest second = desk.wish(GroupKind::shrink, {3, 1, 0});
    assert_true(desk.votes.is_asked(second));
    assert_false(desk.votes.is_asked(desk.wish(GroupKind::create, {3, 1, 0})));
    assert_true(desk.ask(0, second).empty());
    desk.kill(1);
    GroupVotes::Answers answers = desk.votes.member_gone();
    assert_int_equal(answers.size(), 1);
    const GroupReply &reply = answers[0].reply;
    assert_true((answers[0].to == Members{3, 0}));
    assert_true((reply.members == Members{3, 0}));
    assert_true((reply.serials == std::vector<uint32_t>{first.serial, second.serial}));
    assert_int_equal(reply.new_group, 100);
    assert_int_equal(reply.tag_id, 7);
    // A new coordinator that knows the reply gives it to those that have not received it.
    Desk next;
    next.votes.remember(reply);
    answers = next.ask(0, second);
    assert_true((answers[0].to == Members{0}));
    assert_int_equal(answers[0].reply.new_group, 100);
    // The next shrink is another one.
    assert_true(desk.ask(3, desk.wish(GroupKind::shrink, {3, 1, 0})).empty());
    assert_int_equal(desk.votes.next_deadline(), dtrain::second);
    assert_true(desk.votes.tick(dtrain::second - 1).empty());
    expect_failure(desk.votes.tick(dtrain::second), DTRAIN_ERR_TIMEOUT, {3},
                   "shrink: still waiting for rank 0");
}

void a_group_is_exactly_its_list(void **) {
    Desk desk;
    const Members list = {5, 2};
    assert_true(desk.ask(2, desk.wish(GroupKind::create, list)).empty());
    GroupVotes::Answers answers = desk.ask(5, desk.wish(GroupKind::create, list));
    assert_true(answers[0].to == list && answers[0].reply.members == list);
    assert_false(answers[0].reply.again);
    // The same once more is another group.
    assert_true(desk.ask(5, desk.wish(GroupKind::create, list)).empty());
    assert_int_equal(desk.ask(2, desk.wish(GroupKind::create, list))[0].reply.new_group, 101);
    // A member that is gone fails it, whether it goes before or after the others have asked.
    assert_true(desk.ask(2, desk.wish(GroupKind::create, list)).empty());
    desk.kill(5);
    expect_failure(desk.votes.member_gone(), DTRAIN_ERR_PEER, {2},
                   "create_group: rank 5 lost: cut");
    expect_failure(desk.ask(2, desk.wish(GroupKind::create, list)), DTRAIN_ERR_PEER, {2}, "rank 5");
    // A member that has asked and then goes takes its request along.
    assert_true(desk.ask(3, desk.wish(GroupKind::create, {3, 4, 6})).empty());
    assert_true(desk.ask(4, desk.wish(GroupKind::create, {3, 4, 6})).empty());
    desk.kill(4);
    expect_failure(desk.votes.member_gone(), DTRAIN_ERR_PEER, {3}, "rank 4");
    assert_int_equal(desk.votes.next_deadline(), INT64_MAX);
}

void a_failed_one_may_be_repeated(void **) {
    Desk desk;
    const Members list = {0, 1};
    desk.ask(0, desk.wish(GroupKind::create, list));
    expect_failure(desk.votes.tick(second), DTRAIN_ERR_TIMEOUT, {0},
                   "create_group: still waiting for rank 1; every rank of the list must call it");
    assert_true(desk.ask(1, desk.wish(GroupKind::create, list), second).empty());
    assert_int_equal(desk.ask(0, desk.wish(GroupKind::create, list), second)[0].reply.status,
                     DTRAIN_OK);
}

// Wishes that share members, and even the tag, do not disturb each other.
void different_groups_at_once(void **) {
    Desk desk;
    const Members pair = {0, 1}, turned = {1, 0}, all = {0, 1, 2};
    for (const Members &list : {pair, turned, all})
        for (int32_t tag : {0, 1})
            assert_true(desk.ask(0, desk.wish(GroupKind::create, list, tag)).empty());
    for (const Members &list : {pair, turned})
        for (int32_t tag : {1, 0})
            assert_true(desk.ask(1, desk.wish(GroupKind::create, list, tag))[0].to == list);
    assert_true(desk.ask(2, desk.wish(GroupKind::create, all, 1)).empty());
    assert_true(desk.ask(1, desk.wish(GroupKind::create, all, 1))[0].to == all);
    expect_failure(desk.votes.tick(second), DTRAIN_ERR_TIMEOUT, {0}, "waiting for ranks 1-2");
}

void lists_that_differ_are_named_at_the_end(void **) {
    Desk desk;
    GroupRequest longer = desk.wish(GroupKind::create, {0, 1, 2}, 9);
    longer.timeout_ns = 2 * second;
    assert_true(desk.ask(1, longer).empty());
    assert_true(desk.ask(0, desk.wish(GroupKind::create, {1, 0}, 9)).empty());
    assert_true(desk.ask(2, desk.wish(GroupKind::create, {2, 1}, 8)).empty()); // another tag
    const char *text = "create_group: rank 0 gives ranks 1,0, but rank 1 gives ranks 0-2, with the "
                       "same tag 9";
    GroupVotes::Answers answers = desk.votes.tick(second);
    assert_int_equal(answers.size(), 2);
    expect_failure({answers[0]}, DTRAIN_ERR_TIMEOUT, {2}, "rank 1");
    expect_failure({answers[1]}, DTRAIN_ERR_MISMATCH, {0}, text);
    expect_failure(desk.votes.tick(2 * second), DTRAIN_ERR_MISMATCH, {1}, text);
}

// A rank waits in shrink() for one that waits in create_group() for it: the latter gives way.
void a_group_gives_way_to_a_shrink(void **) {
    Desk desk;
    GroupRequest pair = desk.wish(GroupKind::create, {0, 1});
    pair.timeout_ns = 100 * second;
    const auto shrink = [&](int32_t member, uint64_t group, int64_t now) {
        GroupRequest request = desk.wish(GroupKind::shrink, {0, 1, 2}, 0, int32_t(group));
        request.group = group;
        request.timeout_ns = 100 * second;
        return desk.ask(member, request, now);
    };
    assert_true(desk.ask(0, pair, 0).empty());
    assert_true(shrink(2, 9, second).empty()); // it is not missing in the pair
    assert_int_equal(desk.votes.next_deadline(), 100 * second);
    assert_true(shrink(1, 9, 2 * second).empty());
    assert_int_equal(desk.votes.next_deadline(), 7 * second);
    assert_true(desk.votes.tick(7 * second - 1).empty());
    expect_failure(desk.votes.tick(7 * second), DTRAIN_ERR_ABORTED, {0},
                   "create_group: rank 1 shrinks a communicator and waits for this rank");
    assert_true((shrink(0, 9, 8 * second)[0].to == Members{0, 1, 2}));

    // Other threads may do both.
    pair.serial = ++desk.serial;
    assert_true(desk.ask(0, pair, 10 * second).empty());
    assert_true(shrink(1, 11, 10 * second).empty());
    assert_int_equal(desk.votes.next_deadline(), 15 * second);
    assert_true(shrink(0, 11, 11 * second).empty()); // nobody waits for this rank any more
    assert_int_equal(desk.votes.next_deadline(), 110 * second);
    pair.serial = ++desk.serial;
    assert_true((desk.ask(1, pair, 12 * second)[0].to == Members{0, 1}));
    assert_true((shrink(2, 11, 13 * second)[0].to == Members{0, 1, 2}));

    // Of a short time there is a quarter, and at its end the reason is the same.
    pair.serial = ++desk.serial;
    pair.timeout_ns = second;
    assert_true(desk.ask(0, pair, 20 * second).empty());
    assert_true(shrink(1, 12, 20 * second).empty());
    assert_int_equal(desk.votes.next_deadline(), 20 * second + second / 4);
    expect_failure(desk.votes.tick(21 * second), DTRAIN_ERR_ABORTED, {0}, "rank 1 shrinks");
    desk.votes.tick(200 * second);

    // A shrink whose time ends before that needs nobody to give way any more, however late one
    // looks.
    pair.serial = ++desk.serial;
    pair.timeout_ns = 100 * second;
    assert_true(desk.ask(0, pair, 300 * second).empty());
    GroupRequest brief = desk.wish(GroupKind::shrink, {0, 1, 2}, 0, 13);
    brief.group = 13;
    assert_true(desk.ask(1, brief, 300 * second).empty());
    expect_failure(desk.votes.tick(310 * second), DTRAIN_ERR_TIMEOUT, {1}, "shrink: still waiting");
    assert_int_equal(desk.votes.next_deadline(), 400 * second);
}

void members_hold_one_tag(void **) {
    Desk desk;
    const Members list = {0, 1};
    GroupRequest one = desk.wish(GroupKind::create, list, 0, 7),
                 other = desk.wish(GroupKind::create, list, 0, wire::no_tag);
    one.used[0] = 1;
    other.used[1] = 2;
    other.round = 4;
    desk.ask(0, one);
    GroupReply reply = desk.ask(1, other)[0].reply;
    assert_true(reply.again && reply.used[0] == 1 && reply.used[1] == 2);
    assert_int_equal(reply.round, 5);
    for (uint64_t &word : one.used) word = UINT64_MAX;
    one.serial = ++desk.serial;
    other.serial = ++desk.serial;
    desk.ask(0, one);
    expect_failure(desk.ask(1, other), DTRAIN_ERR_LIMIT, list, "destroy some");
}

// What is known of replies is bounded.
void old_replies_are_forgotten(void **) {
    Desk desk;
    const GroupRequest first = desk.wish(GroupKind::create, {3});
    assert_int_equal(desk.ask(3, first)[0].reply.new_group, 100);
    assert_int_equal(desk.ask(3, first)[0].reply.new_group, 100);
    for (int i = 0; i < 300; i++) desk.ask(3, desk.wish(GroupKind::create, {3}));
    assert_int_equal(desk.ask(3, first)[0].reply.new_group, 401);
}

void candidates_are_equal_and_free(void **) {
    TagIds mine, theirs;
    GroupRequest request;
    request.members = {4, 2};
    request.group = 77;
    int32_t first;
    {
        GroupAttempt here(mine, request), there(theirs, request);
        first = here.request().held;
        assert_int_equal(first, there.request().held);
        assert_false(mine.take(uint32_t(first)));
    }
    assert_true(mine.take(uint32_t(first))); // it was let go
    GroupAttempt here(mine, request), there(theirs, request);
    assert_int_not_equal(here.request().held, first);
    GroupReply reply; // as the coordinator would answer
    reply.again = true;
    reply.round = 1;
    for (size_t i = 0; i < reply.used.size(); i++)
        reply.used[i] = here.request().used[i] | there.request().used[i];
    here.again(reply);
    there.again(reply);
    assert_int_equal(here.request().held, there.request().held);
    assert_int_not_equal(here.request().held, first);
    assert_int_equal(here.request().round, 1);
    reply = {};
    reply.members = {4, 2};
    reply.tag_id = uint32_t(here.request().held);
    assert_true(here.fits(reply));
    reply.members = {2}; // of a shrink
    assert_true(here.fits(reply));
    for (const Members &wrong : {Members{2, 4}, {4, 4}, {4, 2, 3}, {4000}}) {
        reply.members = wrong;
        assert_false(here.fits(reply));
    }
    reply.members = {4, 2};
    reply.tag_id++;
    assert_false(here.fits(reply));
    here.keep();
    TagIds full;
    for (uint32_t tag = 0; tag < group_tags; tag++) full.take(tag);
    assert_int_equal(GroupAttempt(full, request).request().held, no_tag);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_living_make_a_smaller_group),
        cmocka_unit_test(a_group_is_exactly_its_list),
        cmocka_unit_test(a_failed_one_may_be_repeated),
        cmocka_unit_test(different_groups_at_once),
        cmocka_unit_test(lists_that_differ_are_named_at_the_end),
        cmocka_unit_test(a_group_gives_way_to_a_shrink),
        cmocka_unit_test(members_hold_one_tag),
        cmocka_unit_test(old_replies_are_forgotten),
        cmocka_unit_test(candidates_are_equal_and_free),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
