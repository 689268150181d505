// Control messages through bytes, whole and damaged.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "wire/control.h"
#include "wire/frame.h"

#include <cstdlib>
#include <cstring>
#include <random>

using namespace dtrain;
using namespace dtrain::wire;

namespace {

Peer peer(int32_t index) {
    return {1,
            index,
            4711,
            "host",
            "10.0.0.1:7",
            "10.0.0.1:7 pid 4711",
            {{"tcp", {1, 2, 3}}, {"shm", std::vector<uint8_t>(512, 9)}},
            0xfedcba9876543210,
            "west/rack 7",
            true,
            1500,
            3};
}

std::vector<Message> one_of_each() {
    GroupReply ok{5, DTRAIN_OK, "", {0, 2}, {3, 9}, 77, group_tags - 1};
    GroupReply late{5, DTRAIN_ERR_TIMEOUT, "still waiting", {2}, {10}};
    GroupReply again{5, DTRAIN_OK, "", {2, 0}, {11, 4}, 0, 0, true, {}, 7};
    again.used[3] = 5;
    Gone gone{9, 3, true, "rank 3 left the job", false, true};
    GroupRequest request{
        5, {0, 1, 2}, {}, second, 3, GroupKind::create, -7, int32_t(group_tags) - 1, 2};
    request.used.back() = 1;
    ReformRequest reform{5, {0, 2}, 3, second, "5f@10.0.0.1:7", 2, 8, true};
    Moved moved{5,
                3,
                DTRAIN_OK,
                "",
                {0, 2, Moved::newcomer},
                {3, Moved::newcomer},
                "5f@10.0.0.1:7",
                4,
                1,
                {"10.0.0.9 pid 7", "10.0.0.9 pid 8"},
                {"rank 1 lost"}};
    Moved refused;
    refused.group = 5;
    refused.status = DTRAIN_ERR_TIMEOUT;
    refused.text = "still waiting";
    return {
        Join{1, 2, 4, 2, peer(1), false, 3},
        Waiting{"waiting 2 s"},
        Roster{11, 0, 0, 2, {peer(0), peer(1)}},
        Heartbeat{8},
        Leave{true},
        Over{DTRAIN_ERR_FENCED, "gone on"},
        gone,
        GroupFailed{5, {0, 1}, DTRAIN_ERR_ABORTED, "why", -1, 17},
        Calls{5,
              {0, 1},
              true,
              {{17, 100, -1, CallKind::all_reduce, 1, 1}, {18, 10, 0, CallKind::broadcast, 1, 0}}},
        CallsWanted{5},
        RankBehind{5, 1, 16},
        Relay{0, 1, 42, {1, 2, 3}},
        request,
        ok,
        Rejoin{11, 9, 2, {gone}, {ok, late, again}, {refused}},
        Welcome{10, {gone}},
        Deposed{9},
        reform,
        moved,
        Newcomers{17}};
}

void all_kinds_survive(void **) {
    std::vector<Message> all = one_of_each();
    assert_int_equal(all.size(), std::variant_size_v<Message>);
    for (size_t i = 0; i < all.size(); i++) {
        assert_int_equal(all[i].index(), i);
        std::vector<uint8_t> bytes = encode(all[i]);
        Message back;
        assert_int_equal(decode(bytes, back), DTRAIN_OK);
        assert_int_equal(back.index(), i);
        assert_true(encode(back) == bytes); // every field came along
    }
}

void values_survive(void **) {
    Message back;
    decode(encode(one_of_each()[8]), back);
    const Calls &calls = std::get<Calls>(back);
    assert_true(calls.stalled);
    assert_true((calls.calls[1] == CallRecord{18, 10, 0, CallKind::broadcast, 1, 0}));
    decode(encode(one_of_each()[2]), back);
    assert_int_equal(std::get<Roster>(back).members[1].transports[1].bytes.size(), 512);
    assert_string_equal(std::get<Roster>(back).members[1].label.c_str(), "10.0.0.1:7 pid 4711");
    assert_int_equal(std::get<Roster>(back).members[1].cpus, 0xfedcba9876543210);
    assert_string_equal(std::get<Roster>(back).members[1].location.c_str(), "west/rack 7");
    assert_int_equal(std::get<Roster>(back).members[1].slot, 3);
    decode(encode(one_of_each()[12]), back);
    assert_int_equal(std::get<GroupRequest>(back).user_tag, -7);
    assert_int_equal(std::get<GroupRequest>(back).held, group_tags - 1);
    decode(encode(one_of_each()[14]), back);
    const GroupReply &again = std::get<Rejoin>(back).replies[2];
    assert_true(again.again && again.used[3] == 5 && again.round == 7);
    assert_true((again.serials == std::vector<uint32_t>{11, 4}));
}

struct Bad {
    const char *named;
    Message message;
};

void out_of_bounds(void **) {
    Join many{1, 1, 4000, 4000, peer(0)}, no_worker{1, 1, 0, 4, peer(0)}, role{1, 1, 4, 0, peer(0)};
    role.self.role = 2;
    Join transports{1, 1, 4, 0, peer(0)};
    transports.self.transports.resize(9, {"x", {}});
    Join long_address{1, 1, 4, 0, peer(0)};
    long_address.self.transports[0].bytes.resize(513);
    Join negative{1, 1, 4, 0, peer(-1)};
    Join slot{1, 1, 4, 0, peer(0)};
    slot.self.slot = max_jobs;
    Calls order{
        5, {0}, false, {{2, 0, -1, CallKind::barrier, 0, 0}, {2, 0, -1, CallKind::barrier, 0, 0}}};
    Calls many_calls{5, {0}, false, {}};
    for (uint64_t i = 1; i < 18; i++)
        many_calls.calls.push_back({i, 0, -1, CallKind::barrier, 0, 0});
    const Bad bad[] = {
        {"size", many},
        {"size", no_worker},
        {"role", role},
        {"transports", transports},
        {"transport address", long_address},
        {"member", negative},
        {"roster", Roster{1, 0, 2, 2, {peer(0)}}},
        {"roster", Roster{1, 0, 1, 2, {peer(0), peer(1)}}},
        {"roster", Roster{1, 0, 0, 5000, {peer(0)}}},
        {"status", Over{DTRAIN_OK, ""}},
        {"status", Over{-1000, ""}},
        {"member", Gone{1, 4096, false, ""}},
        {"list of members", GroupFailed{1, {}, DTRAIN_ERR_PEER, "", -1}},
        {"list of members", GroupFailed{1, std::vector<int32_t>(4097), DTRAIN_ERR_PEER, "", -1}},
        {"member", GroupFailed{1, {-1}, DTRAIN_ERR_PEER, "", -1}},
        {"guilty", GroupFailed{1, {0}, DTRAIN_ERR_PEER, "", -2}},
        {"order", order},
        {"list of calls", many_calls},
        {"relayed", Relay{0, 1, 0, std::vector<uint8_t>(max_relay + 1)}},
        {"timeout", GroupRequest{1, {0}, {}, -1, 1}},
        {"serial", GroupRequest{1, {0}, {}, 1, 0}},
        {"kind of group", GroupRequest{1, {0}, {}, 1, 1, GroupKind(uint8_t(GroupKind::last) + 1)}},
        {"tag", GroupRequest{1, {0}, {}, 1, 1, GroupKind::create, 0, int32_t(group_tags)}},
        {"tag", GroupRequest{1, {0}, {}, 1, 1, GroupKind::create, 0, -2}},
        {"tag", GroupReply{1, DTRAIN_OK, "", {0}, {1}, 1, group_tags}},
        {"list of members", GroupReply{1, DTRAIN_OK, "", {}, {}, 1}},
        {"list of serial", GroupReply{1, DTRAIN_OK, "", {0, 1}, {1}, 1}},
        {"slot", slot},
    };
    for (const Bad &b : bad) {
        Message back = Heartbeat{123};
        Status s = decode(encode(b.message), back);
        if (s != DTRAIN_ERR_CORRUPT || std::strstr(error_text(), b.named) == nullptr)
            print_error("wanted %s, got %s: %s\n", b.named, status_name(s), error_text());
        assert_int_equal(s, DTRAIN_ERR_CORRUPT);
        assert_non_null(std::strstr(error_text(), b.named));
        assert_int_equal(std::get<Heartbeat>(back).epoch, 123);
    }
}

void texts_are_tamed(void **) {
    Message back;
    assert_int_equal(decode(encode(Waiting{"a\x1b[31mb\nc" + std::string(1, '\0') + "d"}), back),
                     DTRAIN_OK);
    assert_string_equal(std::get<Waiting>(back).text.c_str(), "a?[31mb?c?d");
    assert_int_equal(decode(encode(Waiting{std::string(10000, 'x')}), back), DTRAIN_OK);
    assert_int_equal(std::get<Waiting>(back).text.size(), max_text);
}

void frames(void **) {
    std::vector<uint8_t> stream;
    std::vector<Message> all = one_of_each();
    for (const Message &m : all) append_frame(m, stream);
    size_t at = 0, count = 0, used = 0;
    Message message;
    for (size_t end = 0; end <= stream.size(); end++) // arriving byte by byte
        while (next_frame(std::span(stream).subspan(at, end - at), used, message) == DTRAIN_OK) {
            assert_int_equal(message.index(), count++);
            at += used;
        }
    assert_int_equal(count, all.size());
    assert_int_equal(at, stream.size());
    const uint8_t huge[] = {0, 0, 0x10, 0x10, 0}, none[] = {0, 0, 0, 0};
    assert_int_equal(next_frame(huge, used, message), DTRAIN_ERR_CORRUPT);
    assert_int_equal(next_frame(none, used, message), DTRAIN_ERR_CORRUPT);
}

// Nothing that can come out of damaged bytes is outside of the bounds, and nothing crashes.
void damaged(void **) {
    const char *from = std::getenv("DTRAIN_SEED");
    uint32_t seed = from == nullptr ? 1 : uint32_t(std::strtoul(from, nullptr, 10));
    print_message("seed %u\n", seed);
    std::mt19937 random(seed);
    std::vector<Message> all = one_of_each();
    size_t accepted = 0;
    for (int round = 0; round < 100000; round++) {
        std::vector<uint8_t> bytes = encode(all[random() % all.size()]);
        switch (random() % 4) {
        case 0: bytes.resize(random() % bytes.size()); break;
        case 1:
            for (uint8_t &b : bytes) b = uint8_t(random());
            break;
        default:
            for (unsigned i = 1 + random() % 4; i > 0; i--)
                bytes[random() % bytes.size()] =
                    uint8_t(random() % 3 == 0 ? random() : random() % 4);
        }
        Message message;
        if (decode(bytes, message) != DTRAIN_OK) continue;
        accepted++;
        assert_int_equal(decode(encode(message), message), DTRAIN_OK);
    }
    assert_true(accepted > 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_survive),
        cmocka_unit_test(values_survive),
        cmocka_unit_test(out_of_bounds),
        cmocka_unit_test(texts_are_tamed),
        cmocka_unit_test(frames),
        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
