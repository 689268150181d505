// The protection of a connection: who agrees on what, and what of a stream of records still opens
// after somebody on the way has changed it.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "protection/demand.h"
#include "protection/guard.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace dtrain;
using namespace dtrain::protection;

namespace {

using Bytes = std::vector<uint8_t>;
constexpr Level levels[] = {Level::none, Level::integrity, Level::encrypted};
const Bytes transcript(100, 7);

struct Ends {
    Guard a, b;
    Status status_a, status_b;
    explicit Ends(Level demand_a, Level demand_b = Level::none) : Ends(demand_a, demand_b, false) {}
    Ends(const Least &demand_a, const Least &demand_b, bool inside) : a(demand_a), b(demand_b) {
        status_a = a.agree(Role::initiator, "secret", b.offer(), inside, transcript);
        status_b = b.agree(Role::responder, "secret", a.offer(), inside, transcript);
    }
};

Bytes sealed(Guard &by, const std::string &text) {
    Bytes record(text.size() + overhead_bytes);
    memcpy(record.data() + header_bytes, text.data(), text.size());
    assert_int_equal(by.seal(record.data(), text.size()), record.size());
    assert_int_equal(Guard::length_of(record.data()), text.size());
    return record;
}
bool opens(Guard &by, Bytes record, std::string *text = nullptr) {
    const size_t length = Guard::length_of(record.data());
    if (length == 0 || record.size() != length + overhead_bytes) return false;
    if (!by.open(record.data(), length)) return false;
    if (text != nullptr)
        text->assign(record.begin() + header_bytes, record.begin() + long(header_bytes + length));
    return true;
}
bool agree(Guard &a, Guard &b) { // whether what one seals opens at the other
    return opens(b, sealed(a, "one")) && opens(a, sealed(b, "two"));
}

void the_higher_demand_counts(void **) {
    for (const Level a : levels)
        for (const Level b : levels) {
            Ends ends(a, b);
            assert_int_equal(ends.status_a, DTRAIN_OK);
            assert_int_equal(ends.status_b, DTRAIN_OK);
            assert_int_equal(int(ends.a.level()), int(std::max(a, b)));
            assert_int_equal(int(ends.b.level()), int(std::max(a, b)));
            if (std::max(a, b) != Level::none) assert_true(agree(ends.a, ends.b));
        }
}

void who_can_protect_nothing_is_refused_by_name(void **) {
    Guard a(Level::integrity);
    const Offer none{};
    assert_int_equal(a.agree(Role::initiator, "secret", none, false, transcript), DTRAIN_ERR_AUTH);
    assert_non_null(strstr(error_text(), "the other side cannot protect"));
    assert_non_null(strstr(error_text(), "option protection: integrity"));
    Guard b(Level::none);
    assert_int_equal(b.agree(Role::initiator, "secret", none, false, transcript), DTRAIN_OK);
    assert_int_equal(int(b.level()), int(Level::none));
    Guard c(Level::integrity), d(Level::integrity);
    Offer unknown = d.offer();
    unknown.least = Level(3);
    assert_int_equal(c.agree(Role::initiator, "secret", unknown, false, transcript),
                     DTRAIN_ERR_AUTH);
    Guard e(Level::integrity);
    Offer zero = d.offer();
    zero.key = {}; // a point of small order: the shared key would be known to all
    assert_int_equal(e.agree(Role::initiator, "secret", zero, false, transcript), DTRAIN_ERR_AUTH);
}

// Where the hellos prove that nothing can be between the two ends.
void inside_a_kernel_other_demands_count(void **) {
    const Least usual(Level::integrity, Level::none), strict(Level::encrypted);
    for (const bool inside : {false, true}) {
        const Ends both(usual, usual, inside), one(usual, strict, inside);
        assert_int_equal(both.status_a, DTRAIN_OK);
        assert_int_equal(both.status_b, DTRAIN_OK);
        assert_int_equal(int(both.a.level()), int(inside ? Level::none : Level::integrity));
        assert_int_equal(int(both.b.level()), int(both.a.level()));
        assert_int_equal(int(one.a.level()), int(Level::encrypted));
        assert_int_equal(int(one.b.level()), int(Level::encrypted));
    }
}

void the_slower_cipher_serves_who_lacks_the_faster(void **) {
    for (const Level level : {Level::integrity, Level::encrypted}) {
        Guard a(level), b(level);
        Offer old = a.offer();
        old.ciphers = bit_of(Cipher::chacha20_poly1305);
        Guard c(level);
        assert_int_equal(b.agree(Role::responder, "secret", old, false, transcript), DTRAIN_OK);
        Offer of_b = b.offer();
        of_b.ciphers = bit_of(Cipher::chacha20_poly1305);
        assert_int_equal(a.agree(Role::initiator, "secret", of_b, false, transcript), DTRAIN_OK);
        assert_true(agree(a, b));
        Bytes changed = sealed(a, "text");
        changed[5] ^= 1;
        assert_false(opens(b, changed));
    }
}

// Each of these must lead to other keys.
void all_that_was_said_makes_the_keys(void **) {
    const auto differs = [](std::string_view secret, const Bytes &said, Role role, bool own_key) {
        Guard a(Level::encrypted), b(Level::encrypted), stranger(Level::encrypted);
        assert_int_equal(a.agree(Role::initiator, "secret", b.offer(), false, transcript),
                         DTRAIN_OK);
        const Offer &from = own_key ? a.offer() : stranger.offer();
        assert_int_equal(b.agree(role, secret, from, false, said), DTRAIN_OK);
        return !opens(b, sealed(a, "text")) && !opens(a, sealed(b, "text"));
    };
    Bytes other = transcript;
    other.back() ^= 1;
    assert_true(differs("Secret", transcript, Role::responder, true));
    assert_true(differs("secret", other, Role::responder, true));
    assert_true(differs("secret", transcript, Role::responder, false));
    assert_true(differs("secret", transcript, Role::initiator, true)); // reflection
    // The level is a part of the keys, too.
    Guard a(Level::encrypted), b(Level::integrity);
    Offer lower = a.offer();
    lower.least = Level::integrity;
    assert_int_equal(a.agree(Role::initiator, "secret", b.offer(), false, transcript), DTRAIN_OK);
    assert_int_equal(b.agree(Role::responder, "secret", lower, false, transcript), DTRAIN_OK);
    assert_false(opens(b, sealed(a, "text")));
}

void encrypted_hides_and_integrity_does_not(void **) {
    const std::string text(100, 'x');
    for (const Level level : {Level::integrity, Level::encrypted}) {
        Ends ends(level);
        const Bytes record = sealed(ends.a, text);
        const bool hidden = memmem(record.data(), record.size(), "xxxx", 4) == nullptr;
        assert_int_equal(hidden, level == Level::encrypted);
        std::string got;
        assert_true(opens(ends.b, record, &got));
        assert_string_equal(got.c_str(), text.c_str());
    }
}

// A record that does not open ends the stream: the next ones do not open either.
void nothing_but_the_next_record_opens(void **) {
    for (const Level level : {Level::integrity, Level::encrypted}) {
        const auto none_opens = [&](auto &&change) {
            Ends ends(level);
            std::vector<Bytes> records;
            for (const char *text : {"zero", "one", "two", "three"})
                records.push_back(sealed(ends.a, text));
            assert_true(opens(ends.b, records[0]));
            const Bytes bad = change(ends, records);
            assert_false(opens(ends.b, bad));
            for (const Bytes &record : records) assert_false(opens(ends.b, record));
        };
        for (size_t bit = 0; bit < 8 * (3 + overhead_bytes); bit++)
            none_opens([bit](Ends &, std::vector<Bytes> &r) {
                Bytes bad = r[1];
                bad[bit / 8] ^= uint8_t(1 << bit % 8);
                // A length that promises more bytes never becomes a record; here they are there.
                bad.resize(std::min<size_t>(Guard::length_of(bad.data()), 1000) + overhead_bytes);
                if (Guard::length_of(bad.data()) + overhead_bytes != bad.size()) bad = Bytes(30);
                return bad;
            });
        none_opens([](Ends &, std::vector<Bytes> &r) { return r[0]; }); // repeated
        none_opens([](Ends &, std::vector<Bytes> &r) { return r[2]; }); // one was left out
        none_opens([](Ends &ends, std::vector<Bytes> &) { return sealed(ends.b, "own"); });
        none_opens([level](Ends &, std::vector<Bytes> &) { // of another connection of the job
            Ends other(level);
            sealed(other.a, "zero");
            return sealed(other.a, "one");
        });
        none_opens([](Ends &, std::vector<Bytes> &) { return Bytes(100, 0x31); });
    }
}

void lengths_are_bounded(void **) {
    const uint8_t good[] = {0, 0, 1, 0}, large[] = {1, 0, 1, 0}, empty[] = {0, 0, 0, 0},
                  huge[] = {255, 255, 255, 255};
    assert_int_equal(Guard::length_of(good), max_payload);
    for (const uint8_t *bad : {large, empty, huge}) assert_int_equal(Guard::length_of(bad), 0);
    Ends ends(Level::encrypted);
    const std::string most(max_payload, 'm');
    std::string got;
    assert_true(opens(ends.b, sealed(ends.a, most), &got));
    assert_true(got == most);
}

// More records than one key protects, in both directions.
void keys_change(void **) {
    Ends ends(Level::integrity);
    uint8_t record[1 + overhead_bytes];
    for (uint64_t i = 0; i < records_per_key + 3; i++) {
        record[header_bytes] = uint8_t(i);
        ends.a.seal(record, 1);
        if (!ends.b.open(record, 1)) fail_msg("record %llu", static_cast<unsigned long long>(i));
        assert_int_equal(record[header_bytes], uint8_t(i));
    }
    assert_true(agree(ends.b, ends.a));
}

// A core file of this process has no key: its pages say so to the kernel.
void keys_are_in_pages_that_are_not_dumped(void **) {
    void *piece = take_secret_memory(100);
    assert_non_null(piece);
    FILE *maps = fopen("/proc/self/smaps", "r");
    assert_non_null(maps);
    char line[512];
    bool inside = false, hidden = false;
    while (fgets(line, sizeof line, maps) != nullptr) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from <= uintptr_t(piece) && uintptr_t(piece) < to;
        if (inside && strncmp(line, "VmFlags:", 8) == 0) hidden = strstr(line, " dd") != nullptr;
    }
    fclose(maps);
    assert_true(hidden);
    memset(piece, 0x55, 100);
    const pid_t child = fork();
    if (child == 0) { // it has no business with its parent's connections
        for (int i = 0; i < 100; i++)
            if (static_cast<uint8_t *>(piece)[i] != 0) _exit(1);
        void *own = take_secret_memory(100);
        _exit(own != nullptr ? 0 : 2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    const auto *bytes = static_cast<const uint8_t *>(piece);
    give_back_secret_memory(piece, 100);
    for (int i = int(sizeof(void *)); i < 100; i++) assert_int_equal(bytes[i], 0);
}

void the_option_demands(void **) {
    Options options;
    Demand demand;
    const auto read = [&](const char *value, bool has_secret) {
        assert_int_equal(options.set("protection", value), DTRAIN_OK);
        return read_demand(options, has_secret, demand);
    };
    assert_int_equal(read("auto", true), DTRAIN_OK);
    assert_true(demand.control == Level::encrypted &&
                demand.data == Least(Level::integrity, Level::none));
    assert_int_equal(read("encrypted", true), DTRAIN_OK);
    assert_true(demand.control == Level::encrypted && demand.data == Least(Level::encrypted));
    assert_int_equal(read("integrity", true), DTRAIN_OK);
    assert_true(demand.control == Level::encrypted && demand.data == Least(Level::integrity));
    assert_int_equal(read("none", true), DTRAIN_OK);
    assert_true(demand.control == Level::none && demand.data == Least(Level::none));
    for (const char *value : {"auto", "none"}) {
        assert_int_equal(read(value, false), DTRAIN_OK);
        assert_true(demand.control == Level::none && demand.data == Least(Level::none));
    }
    for (const char *value : {"integrity", "encrypted"}) {
        assert_int_equal(read(value, false), DTRAIN_ERR_CONFIG);
        assert_non_null(strstr(error_text(), "needs a secret"));
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_higher_demand_counts),
        cmocka_unit_test(who_can_protect_nothing_is_refused_by_name),
        cmocka_unit_test(inside_a_kernel_other_demands_count),
        cmocka_unit_test(the_slower_cipher_serves_who_lacks_the_faster),
        cmocka_unit_test(all_that_was_said_makes_the_keys),
        cmocka_unit_test(encrypted_hides_and_integrity_does_not),
        cmocka_unit_test(nothing_but_the_next_record_opens),
        cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(keys_change),
        cmocka_unit_test(keys_are_in_pages_that_are_not_dumped),
        cmocka_unit_test(the_option_demands),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
