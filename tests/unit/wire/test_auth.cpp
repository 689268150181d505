// The handshake: who gets in, who does not, and what each side can say about it.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "wire/auth.h"

#include <algorithm>
#include <cstring>

using namespace dtrain;
using namespace dtrain::wire;

namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t hello_bytes = 84, answer_bytes = 116;

Nonce nonce(uint8_t fill) {
    Nonce n;
    n.fill(fill);
    return n;
}

// One side with what it received and has to send.
struct Party {
    Handshake handshake;
    Bytes in, out;
    Status status = DTRAIN_IN_PROGRESS;
    std::string text;

    Party(Handshake::Side side, const Credentials &own, int32_t self, int32_t peer, uint8_t fill)
        : handshake(side, own, self, peer, nonce(fill)) {}
    void go() {
        if (status != DTRAIN_IN_PROGRESS) return;
        status = handshake.advance(in, out);
        if (status < 0) text = error_text();
    }
};

// Moves what one wants to send to the other, `piece` bytes at a time.
void pass(Party &from, Party &to, size_t piece) {
    while (!from.out.empty()) {
        size_t n = std::min(piece, from.out.size());
        to.in.insert(to.in.end(), from.out.begin(), from.out.begin() + long(n));
        from.out.erase(from.out.begin(), from.out.begin() + long(n));
        to.go();
    }
}

struct Meeting {
    const Credentials left, right;
    Party dialler, listener;
    Meeting(const char *dialler_secret, const char *listener_secret, int32_t expected = 0,
            size_t piece = 1000)
        : left{dialler_secret, protection::Level::encrypted}, right{listener_secret},
          dialler(Handshake::Side::dialler, left, 7, expected, 1),
          listener(Handshake::Side::listener, right, 0, Handshake::anybody, 2) {
        dialler.go();
        listener.go();
        for (int i = 0; i < 2; i++) {
            pass(dialler, listener, piece);
            pass(listener, dialler, piece);
        }
    }
};

bool says(const Party &party, const char *part) {
    return std::strstr(party.text.c_str(), part) != nullptr;
}

void same_secret(void **) {
    for (const char *secret :
         {"", "s", "a much longer secret than the size of a hash, to be sure of it"})
        for (size_t piece : {1u, 7u, 1000u}) {
            Meeting m(secret, secret, 0, piece);
            assert_int_equal(m.dialler.status, DTRAIN_OK);
            assert_int_equal(m.listener.status, DTRAIN_OK);
            assert_int_equal(m.listener.handshake.peer(), 7);
            assert_int_equal(m.dialler.handshake.peer(), 0);
            assert_true(m.dialler.in.empty() && m.listener.in.empty());
        }
}

void wrong_secret(void **) {
    Meeting m("right", "wrong");
    assert_int_equal(m.dialler.status, DTRAIN_ERR_AUTH);
    assert_true(says(m.dialler, "different secret"));
    assert_int_equal(m.listener.status, DTRAIN_ERR_AUTH);
    assert_true(says(m.listener, "wrong secret"));
}

void secret_on_one_side(void **) {
    Meeting only_listener("", "secret");
    assert_int_equal(only_listener.dialler.status, DTRAIN_ERR_AUTH);
    assert_true(says(only_listener.dialler, "this process has none"));
    assert_int_equal(only_listener.listener.status, DTRAIN_ERR_AUTH);
    assert_true(says(only_listener.listener, "other side has none"));
    Meeting only_dialler("secret", "");
    assert_int_equal(only_dialler.dialler.status, DTRAIN_ERR_AUTH);
    assert_int_equal(only_dialler.listener.status, DTRAIN_ERR_AUTH);
}

void another_member(void **) {
    Meeting m("s", "s", 3);
    assert_int_equal(m.dialler.status, DTRAIN_ERR_CORRUPT);
    assert_true(says(m.dialler, "another member (0)"));
}

// What one conversation proved is worth nothing in the next one.
void replay(void **) {
    const Credentials secret{"s"};
    Party dialler(Handshake::Side::dialler, secret, 7, 0, 1);
    Party listener(Handshake::Side::listener, secret, 0, Handshake::anybody, 2);
    dialler.go();
    Bytes hello = dialler.out;
    pass(dialler, listener, 1000);
    pass(listener, dialler, 1000);
    Bytes proof = dialler.out;
    pass(dialler, listener, 1000);
    assert_int_equal(listener.status, DTRAIN_OK);

    Party again(Handshake::Side::listener, secret, 0, Handshake::anybody, 3);
    again.in = hello;
    again.go();
    assert_int_equal(again.status, DTRAIN_IN_PROGRESS);
    again.in = proof;
    again.go();
    assert_int_equal(again.status, DTRAIN_ERR_AUTH);
}

// A listener that knows nothing lets the dialler's own words come back.
void reflection(void **) {
    const Credentials secret{"s"};
    Party dialler(Handshake::Side::dialler, secret, 7, Handshake::anybody, 1);
    Party mirror(Handshake::Side::listener, secret, 7, Handshake::anybody, 1);
    dialler.go();
    Bytes hello = dialler.out;
    Bytes fake = hello; // its head, and as MAC whatever can be had
    fake.resize(answer_bytes);
    dialler.in = fake;
    dialler.go();
    assert_int_equal(dialler.status, DTRAIN_ERR_AUTH);
    // Nor does an answer serve as a proof: the labels differ.
    mirror.in = hello;
    mirror.go();
    Bytes proof(mirror.out.begin() + long(hello_bytes), mirror.out.end());
    proof.push_back(1);
    mirror.in = proof;
    mirror.go();
    assert_int_equal(mirror.status, DTRAIN_ERR_AUTH);
}

// Every bit counts.
void flipped_bits(void **) {
    const Credentials secret{"s"};
    for (size_t bit = 0; bit < 8 * (hello_bytes + 33); bit++) {
        Party dialler(Handshake::Side::dialler, secret, 7, Handshake::anybody, 1);
        Party listener(Handshake::Side::listener, secret, 0, Handshake::anybody, 2);
        dialler.go();
        if (bit < 8 * hello_bytes) dialler.out[bit / 8] ^= uint8_t(1 << bit % 8);
        pass(dialler, listener, 1000);
        pass(listener, dialler, 1000);
        if (bit >= 8 * hello_bytes && !dialler.out.empty())
            dialler.out[bit / 8 - hello_bytes] ^= uint8_t(1 << bit % 8);
        pass(dialler, listener, 1000);
        if (listener.status >= 0) print_error("bit %zu was ignored\n", bit);
        assert_true(listener.status < 0);
    }
}

void garbage(void **) {
    const Credentials secret;
    uint32_t x = 12345;
    for (int round = 0; round < 2000; round++) {
        Party listener(Handshake::Side::listener, secret, 0, Handshake::anybody, 2);
        for (int i = 0; i < 100; i++) {
            x = x * 1664525 + 1013904223;
            listener.in.push_back(uint8_t(x >> 24));
        }
        listener.go();
        assert_int_equal(listener.status, DTRAIN_ERR_CORRUPT);
    }
    Party http(Handshake::Side::listener, secret, 0, Handshake::anybody, 2);
    http.in = {'G', 'E', 'T'}; // told at once, without waiting for the rest
    http.go();
    assert_int_equal(http.status, DTRAIN_ERR_CORRUPT);
    assert_true(http.out.empty());
}

// Both sides have the same keys, if there is a secret and one of them asks for protection.
void keys(void **) {
    Meeting m("s", "s");
    const auto a = m.dialler.handshake.take_guard(), b = m.listener.handshake.take_guard();
    assert_true(a != nullptr && b != nullptr);
    assert_int_equal(int(a->level()), int(protection::Level::encrypted));
    uint8_t record[3 + protection::overhead_bytes] = {0, 0, 0, 0, 'x', 'y', 'z'};
    a->seal(record, 3);
    assert_memory_not_equal(record + 4, "xyz", 3);
    assert_true(b->open(record, 3));
    assert_memory_equal(record + 4, "xyz", 3);
    Meeting without("", "");
    assert_true(without.dialler.handshake.take_guard() == nullptr);
    const Credentials plain{"s"};
    Party dialler(Handshake::Side::dialler, plain, 7, 0, 1);
    Party listener(Handshake::Side::listener, plain, 0, Handshake::anybody, 2);
    dialler.go();
    pass(dialler, listener, 1000);
    pass(listener, dialler, 1000);
    pass(dialler, listener, 1000);
    assert_int_equal(listener.status, DTRAIN_OK);
    assert_true(listener.handshake.take_guard() == nullptr);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(same_secret),
        cmocka_unit_test(wrong_secret),
        cmocka_unit_test(secret_on_one_side),
        cmocka_unit_test(another_member),
        cmocka_unit_test(replay),
        cmocka_unit_test(reflection),
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test(garbage),
        cmocka_unit_test(keys),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
