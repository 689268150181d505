// What goes wrong among ranks: differences, stalls, the end, and nonsense from a peer.
// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <cstdio>
#include <cstring>
#include <random>

using namespace world;

namespace {

constexpr uint32_t seed = 20240608;
constexpr int64_t second = 1'000'000'000;

bool says(const std::string &text, const char *what) {
    if (text.find(what) != std::string::npos) return true;
    std::fprintf(stderr, "\"%s\" does not say \"%s\"\n", text.c_str(), what);
    return false;
}

std::string failure(World &w, int r, const char *name, Status status) {
    auto &failed = w.ranks[size_t(r)].failed;
    if (failed.count(name) == 0 || failed[name].first != status)
        fail_msg("rank %d: \"%s\" did not fail with %s", r, name, status_name(status));
    return failed[name].second;
}

void differences_fail_that_tensor_everywhere(void **) {
    World w(4);
    w.submit(0, "x", f32(10));
    w.submit(1, "x", f32(10));
    w.submit(2, "x", f32(11));
    for (int r = 0; r < 4; r++) w.submit(r, "good", f32(5));
    assert_true(w.cycle() == std::vector<std::string>{"good"});
    for (int r = 0; r < 3; r++) {
        std::string text = failure(w, r, "x", DTRAIN_ERR_MISMATCH);
        assert_true(says(text, "\"x\"") && says(text, "rank 0 submitted f32[10] sum") &&
                    says(text, "rank 2 f32[11] sum"));
    }
    // The fourth, too, when it comes to it; from then on all are even.
    assert_int_equal(w.submit(3, "x", f32(10)), DTRAIN_ERR_MISMATCH);
    assert_true(says(error_text(), "rank 2 f32[11] sum"));
    for (int r = 0; r < 4; r++) assert_int_equal(w.submit(r, "x", f32(12)), DTRAIN_OK);
    assert_true(w.cycle() == std::vector<std::string>{"x"});
}

void differs_from_what_is_known(void **) {
    World w(3);
    for (int r = 0; r < 3; r++) w.submit(r, "x", f32(10));
    w.run();
    w.submit(0, "x", f32(10));
    w.cycle(); // it waits, known
    w.submit(1, "x", {.count = 10, .dtype = DTRAIN_F64, .op = DTRAIN_SUM});
    w.run();
    assert_true(says(failure(w, 0, "x", DTRAIN_ERR_MISMATCH), "rank 1 f64[10] sum"));
    assert_true(says(failure(w, 1, "x", DTRAIN_ERR_MISMATCH), "rank 0 submitted f32[10] sum"));
    assert_int_equal(w.submit(2, "x", f32(10)), DTRAIN_ERR_MISMATCH);
    for (int r = 0; r < 3; r++) assert_int_equal(w.submit(r, "x", f32(10)), DTRAIN_OK);
    assert_true(w.cycle() == std::vector<std::string>{"x"});
}

// The number of what failed is given to another tensor in the same exchange.
void a_failed_tensors_number_is_free(void **) {
    World w(2);
    w.submit(0, "x", f32(10));
    w.cycle();
    w.submit(1, "x", f32(11));
    w.submit(1, "y", f32(5));
    assert_true(w.cycle().empty());
    failure(w, 0, "x", DTRAIN_ERR_MISMATCH);
    w.submit(0, "y", f32(5));
    assert_true(w.cycle() == std::vector<std::string>{"y"});
    assert_int_equal(w.longest_words, 2);
}

void all_may_change_together(void **) {
    World w(3);
    for (uint64_t count = 1; count < 20; count++)
        for (int r = 2; r >= 0; r--) {
            assert_int_equal(w.submit(r, "x", f32(count)), DTRAIN_OK);
            assert_int_equal(w.cycle().size(), r == 0 ? 1 : 0);
        }
    for (Rank &rank : w.ranks) assert_true(rank.failed.empty());
}

void same_name_twice(void **) {
    World w(2);
    assert_int_equal(w.submit(0, "x", f32(1)), DTRAIN_OK);
    assert_int_equal(w.submit(0, "x", f32(1)), DTRAIN_ERR_BUSY);
    w.cycle();
    assert_int_equal(w.submit(0, "x", f32(1)), DTRAIN_ERR_BUSY);
    w.submit(1, "x", f32(1));
    w.cycle();
    assert_int_equal(w.submit(0, "x", f32(1)), DTRAIN_OK);
}

void too_many_wait(void **) {
    World w(1);
    for (size_t i = 0; i < max_pending; i++)
        assert_int_equal(w.submit(0, numbered(int(i)), f32(1)), DTRAIN_OK);
    assert_int_equal(w.submit(0, "one more", f32(1)), DTRAIN_ERR_LIMIT);
    w.run(3); // several exchanges, their length is bounded
    assert_true(w.exchanges > 1 && w.ranks[0].names.empty());
}

// ---- stalls ----

void stalls_are_reported(void **) {
    World w(4, {.stall_warn_ns = 60 * second});
    for (int r : {0, 2}) w.submit(r, "lost", f32(1));
    w.submit(0, "other", f32(1));
    w.submit(2, "other", f32(1));
    w.submit(3, "other", f32(1));
    for (w.now_ns += 59 * second; w.now_ns < 60 * second; w.now_ns += second / 2) w.cycle();
    for (Rank &rank : w.ranks) assert_true(rank.warnings.empty());
    size_t exchanges = w.exchanges;
    w.now_ns = 61 * second;
    w.run();
    assert_int_equal(w.exchanges, exchanges + 1);
    assert_true(w.ranks[1].warnings.empty());
    assert_int_equal(w.ranks[0].warnings.size(), 1);
    assert_true(says(w.ranks[0].warnings[0], "rank 0 waits for others to submit "
                                             "\"lost\" (not on ranks 1, 3 after 61.0 s), "
                                             "\"other\" (not on rank 1 after 61.0 s)"));
    assert_true(says(w.ranks[3].warnings.at(0), "rank 3 waits for others to submit \"other\""));
    w.now_ns = 100 * second;
    w.run();
    assert_int_equal(w.ranks[0].warnings.size(), 1);
    w.now_ns = 122 * second; // and again
    w.run();
    assert_int_equal(w.ranks[0].warnings.size(), 2);
    for (int r : {1, 3}) w.submit(r, "lost", f32(1));
    w.submit(1, "other", f32(1));
    w.run();
    for (Rank &rank : w.ranks) assert_true(rank.failed.empty() && rank.names.empty());
}

void stalls_fail_where_it_was_submitted(void **) {
    World w(3, {.stall_fail_ns = 100 * second});
    for (int r = 0; r < 3; r++) w.submit(r, "x", f32(1));
    w.run();
    w.submit(0, "x", f32(1));
    w.now_ns = 90 * second;
    w.submit(1, "x", f32(1));
    w.run();
    w.now_ns = 101 * second;
    w.run();
    std::string text = failure(w, 0, "x", DTRAIN_ERR_TIMEOUT);
    assert_true(says(text, "not submitted by rank 2") && says(text, "rank 0 waits no longer") &&
                says(text, "101.0 s ago"));
    assert_true(says(failure(w, 1, "x", DTRAIN_ERR_TIMEOUT), "not submitted by rank 2"));
    assert_int_equal(w.submit(2, "x", f32(1)), DTRAIN_ERR_TIMEOUT);
    for (int r = 0; r < 3; r++) assert_int_equal(w.submit(r, "x", f32(1)), DTRAIN_OK);
    assert_true(w.cycle() == std::vector<std::string>{"x"});
}

void own_timeouts_do_the_same(void **) {
    World w(2);
    w.submit(0, "x", f32(1), 0, 5 * second);
    w.now_ns = 4 * second;
    w.run();
    w.now_ns = 6 * second;
    w.run();
    assert_true(says(failure(w, 0, "x", DTRAIN_ERR_TIMEOUT), "not submitted by rank 1"));
    // Not announced before its time is over.
    w.submit(0, "y", f32(1), 0, 7 * second);
    w.now_ns = 8 * second;
    w.run();
    assert_true(says(failure(w, 0, "y", DTRAIN_ERR_TIMEOUT), "not submitted by rank 1"));
    assert_int_equal(w.submit(1, "x", f32(1)), DTRAIN_ERR_TIMEOUT);
    // Late, but everywhere.
    w.submit(0, "z", f32(1), 0, 9 * second);
    w.submit(1, "z", f32(1));
    w.now_ns = 10 * second;
    assert_true(w.cycle() == std::vector<std::string>{"z"});
}

// What a rank never submitted because it had joined is no failure of its next epoch.
void joining_forgets_failures(void **) {
    World w(2);
    w.submit(0, "x", f32(1), 0, 5 * second);
    w.now_ns = 6 * second;
    w.run();
    failure(w, 0, "x", DTRAIN_ERR_TIMEOUT);
    for (int r = 0; r < 2; r++) w.join(r);
    w.run();
    assert_int_equal(w.submit(1, "x", f32(1)), DTRAIN_OK);
}

void closing_is_known_to_all(void **) {
    World w(3);
    w.submit(1, "x", f32(1));
    w.ranks[2].negotiation->close();
    w.cycle();
    for (Rank &rank : w.ranks) assert_int_equal(rank.closed_by, 2);
}

// ---- nonsense ----

void ranks_out_of_step_are_noticed(void **) {
    for (uint32_t bit = 0; bit < 128; bit++) {
        Negotiation n(0, 2, {});
        Actions actions;
        bool exchange = false;
        Bits words = n.begin(1);
        words.resize(2);
        words[bit / 64] ^= uint64_t{1} << bit % 64;
        Status s = n.reduced(words, exchange, actions);
        assert_int_equal(s, bit == 0 ? DTRAIN_OK : DTRAIN_ERR_INTERNAL);
    }
}

// What is being reduced waits nowhere, so nobody can announce it.
void announcing_what_is_agreed_on(void **) {
    Negotiation n(0, 1, {.bucket_bytes = 4});
    auto exchange = [&](Report report) {
        n.begin(1);
        std::vector<uint8_t> bytes = encode(report);
        std::vector<std::span<const uint8_t>> views = {bytes};
        Actions actions;
        return n.gathered(views, 1, actions);
    };
    Report report;
    report.fresh = {{"x", f32(1), 0, false}, {"y", f32(1), 0, false}};
    for (const Announcement &a : report.fresh)
        assert_int_equal(n.submit({a.name, a.spec, 0, 1, 0, INT64_MAX}), DTRAIN_OK);
    assert_int_equal(exchange(report), DTRAIN_OK);
    report.waiting = {0};
    report.expired = {3};
    report.fresh.clear();
    assert_int_equal(exchange(report), DTRAIN_OK); // nor give it up
    report.fresh = {{"x", f32(2), 0, false}};
    assert_int_equal(exchange(report), DTRAIN_ERR_CORRUPT);
    Bucket bucket;
    assert_true(n.next_bucket(bucket) && bucket.bytes == 4);
}

// A rank that lies may stop the others, nothing else.
void corrupt_reports(void **) {
    std::printf("seed %u\n", seed);
    std::mt19937 random(seed);
    int refused = 0;
    for (int round = 0; round < 20'000; round++) {
        Negotiation a(0, 2, {}), b(1, 2, {});
        for (int i = 0; i < 3; i++) {
            a.submit({numbered(i), f32(3), 0, uint64_t(i + 1), 0, INT64_MAX});
            b.submit({numbered(2 - i), f32(3), 0, uint64_t(i + 1), 0, INT64_MAX});
        }
        for (int again = 0; again < 3; again++) {
            a.begin(1);
            std::vector<uint8_t> good = a.announce(1), bad = b.announce(1);
            for (auto n = random() % 4; n > 0 && !bad.empty(); n--)
                bad[random() % bad.size()] = uint8_t(random());
            if (random() % 4 == 0) bad.resize(random() % (bad.size() + 9));
            std::vector<std::span<const uint8_t>> views = {good, bad};
            Actions actions;
            Status s = a.gathered(views, 1, actions);
            assert_true(s == DTRAIN_OK || s == DTRAIN_ERR_CORRUPT || s == DTRAIN_ERR_INTERNAL);
            if (s != DTRAIN_OK) {
                refused++;
                break;
            }
        }
    }
    assert_true(refused > 1000);
}

void reports_arrive_as_they_were(void **) {
    Report report = {
        .joins = true,
        .closes = false,
        .waiting = {0x123456789abcdef0, 7},
        .expired = {0, 4},
        .fresh = {{std::string(max_name, 'n'), f32(1), -7, true},
                  {"b", {.count = 9, .dtype = DTRAIN_I8, .op = DTRAIN_MAX}, 3, false}}};
    std::vector<uint8_t> bytes = encode(report);
    assert_int_equal(bytes.size(), report_bytes(2) + announcement_bytes(report.fresh[0]) +
                                       announcement_bytes(report.fresh[1]));
    Report again;
    assert_int_equal(decode(bytes, 2, again), DTRAIN_OK);
    assert_true(again.joins && !again.closes);
    assert_true(again.waiting == report.waiting && again.expired == report.expired);
    assert_int_equal(again.fresh.size(), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(again.fresh[i].name == report.fresh[i].name);
        assert_true(again.fresh[i].spec == report.fresh[i].spec);
        assert_int_equal(again.fresh[i].priority, report.fresh[i].priority);
        assert_int_equal(again.fresh[i].expired, report.fresh[i].expired);
    }
    for (size_t n = 0; n < bytes.size(); n++)
        assert_int_equal(decode({bytes.data(), n}, 2, again), DTRAIN_ERR_CORRUPT);
    bytes.push_back(0);
    assert_int_equal(decode(bytes, 2, again), DTRAIN_ERR_CORRUPT);
    bytes.pop_back();
    assert_int_equal(decode(bytes, 3, again), DTRAIN_ERR_CORRUPT);
}

void tensors_that_cannot_be(void **) {
    assert_int_equal(check_tensor("x", 1, DTRAIN_F32, DTRAIN_SUM), DTRAIN_OK);
    assert_int_equal(check_tensor("", 1, DTRAIN_F32, DTRAIN_SUM), DTRAIN_ERR_INVALID);
    assert_int_equal(check_tensor(std::string(256, 'x'), 1, DTRAIN_F32, DTRAIN_SUM),
                     DTRAIN_ERR_INVALID);
    assert_int_equal(check_tensor("x", 0, DTRAIN_F32, DTRAIN_SUM), DTRAIN_ERR_INVALID);
    assert_int_equal(check_tensor("x", UINT64_MAX / 4, DTRAIN_F32, DTRAIN_SUM), DTRAIN_ERR_INVALID);
    assert_int_equal(check_tensor("x", 1, 99, DTRAIN_SUM), DTRAIN_ERR_INVALID);
    assert_int_equal(check_tensor("x", 1, DTRAIN_F32, 99), DTRAIN_ERR_INVALID);
    assert_int_equal(check_tensor("x", 1, DTRAIN_F32, DTRAIN_BAND), DTRAIN_ERR_INVALID);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(differences_fail_that_tensor_everywhere),
        cmocka_unit_test(differs_from_what_is_known),
        cmocka_unit_test(a_failed_tensors_number_is_free),
        cmocka_unit_test(all_may_change_together),
        cmocka_unit_test(same_name_twice),
        cmocka_unit_test(too_many_wait),
        cmocka_unit_test(stalls_are_reported),
        cmocka_unit_test(stalls_fail_where_it_was_submitted),
        cmocka_unit_test(own_timeouts_do_the_same),
        cmocka_unit_test(joining_forgets_failures),
        cmocka_unit_test(closing_is_known_to_all),
        cmocka_unit_test(ranks_out_of_step_are_noticed),
        cmocka_unit_test(announcing_what_is_agreed_on),
        cmocka_unit_test(corrupt_reports),
        cmocka_unit_test(reports_arrive_as_they_were),
        cmocka_unit_test(tensors_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
