// The handshake of control connections: somebody between two processes, or one of them, says
// anything.
// SPDX-License-Identifier: Apache-2.0
//
// Input: flags, then a mask for each of the three messages, which is XORed onto what the genuine
// side said. With `signs`, the author knows the secret and computes the MACs of what it says.
#include "tests/fuzz/fuzz.h"

#include "wire/auth.h"

#include <initializer_list>
#include <sodium.h>

using namespace dtrain;
using namespace dtrain::wire;
using fuzz::Bytes;

namespace {

enum Flags : uint8_t {
    signs = 1,
    no_secret = 2,
    other_secret = 4,
    other_meeting = 8,
    anybody = 16
};
constexpr size_t hello_bytes = 84, answer_bytes = 116, proof_bytes = 33, mac_at = 84;

Mac mac_of(std::string_view secret, std::string_view label, const Bytes &hello,
           const Bytes &answer) {
    uint8_t key[32];
    crypto_hash_sha256(key, reinterpret_cast<const uint8_t *>(secret.data()), secret.size());
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key, sizeof key);
    crypto_auth_hmacsha256_update(&state, reinterpret_cast<const uint8_t *>(label.data()),
                                  label.size() + 1); // with its zero
    crypto_auth_hmacsha256_update(&state, hello.data(), hello.size());
    crypto_auth_hmacsha256_update(&state, answer.data(), mac_at);
    Mac mac;
    crypto_auth_hmacsha256_final(&state, mac.data());
    return mac;
}

bool mask(Bytes &message, const Bytes &mask) {
    bool changed = false;
    for (size_t i = 0; i < std::min(message.size(), mask.size()); i++) {
        message[i] ^= mask[i];
        changed |= mask[i] != 0;
    }
    return changed;
}

protection::Level level_of(uint8_t byte) { return protection::Level(byte % 3); }

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t flags = in.byte(), levels = in.byte();
    const Credentials own{(flags & no_secret) ? "" : "secret", level_of(levels)},
        theirs{(flags & no_secret)      ? ""
               : (flags & other_secret) ? "other"
                                        : "secret",
               level_of(levels / 3)};
    const bool one_secret = own.secret.text() == theirs.secret.text(),
               one_job = (flags & other_meeting) == 0;
    using Side = Handshake::Side;
    Handshake dialler(Side::dialler, own, 1, (flags & anybody) ? Handshake::anybody : 0, Nonce{1},
                      7);
    Handshake listener(Side::listener, theirs, 0, Handshake::anybody, Nonce{2}, one_job ? 7 : 8);

    bool changed = false;
    Bytes nothing, hello, answer, proof;
    FUZZ_REQUIRE(dialler.advance(nothing, hello) == DTRAIN_IN_PROGRESS &&
                 hello.size() == hello_bytes);
    const Bytes sent_hello = hello;
    changed |= mask(hello, in.bytes(hello_bytes));
    // A message may arrive in pieces.
    const size_t first = std::min<size_t>(in.byte(), hello.size());
    Bytes part(hello.begin(), hello.begin() + long(first)), unread;
    FUZZ_REQUIRE(listener.advance(nothing, answer) == DTRAIN_IN_PROGRESS);
    Status heard = listener.advance(part, answer);
    unread = part;
    unread.insert(unread.end(), hello.begin() + long(first), hello.end());
    if (heard == DTRAIN_IN_PROGRESS && answer.empty()) heard = listener.advance(unread, answer);
    FUZZ_REQUIRE(heard != DTRAIN_OK);
    if (answer.empty()) return 0;
    FUZZ_REQUIRE(answer.size() == answer_bytes);
    changed |= mask(answer, in.bytes(answer_bytes));
    if (flags & signs) {
        const Mac mac = mac_of(own.secret.text(), "listener", sent_hello, answer);
        std::copy(mac.begin(), mac.end(), answer.begin() + long(mac_at));
    }
    const Bytes heard_answer = answer;
    const Status dialled = dialler.advance(answer, proof);
    FUZZ_REQUIRE(dialled != DTRAIN_IN_PROGRESS);
    if (proof.empty()) return 0;
    FUZZ_REQUIRE(proof.size() == proof_bytes);
    changed |= mask(proof, in.bytes(proof_bytes));
    if (heard != DTRAIN_IN_PROGRESS) return 0;
    const Status listened = listener.advance(proof, nothing);
    FUZZ_REQUIRE(listened != DTRAIN_IN_PROGRESS);
    const bool both = dialled == DTRAIN_OK && listened == DTRAIN_OK;
    const bool secret = !own.secret.empty();
    // A stranger changes nothing unnoticed, and a side with another secret gets nowhere.
    if (secret && (flags & signs) == 0) FUZZ_REQUIRE(!both || !changed);
    if (!one_secret && (flags & signs) == 0) FUZZ_REQUIRE(!both);
    if (!changed && one_secret && one_job) FUZZ_REQUIRE(both);
    if (!both || changed) return 0;
    auto a = dialler.take_guard(), b = listener.take_guard();
    FUZZ_REQUIRE((a == nullptr) == (b == nullptr));
    if (a == nullptr) return 0;
    FUZZ_REQUIRE(a->level() == std::max(own.demand, theirs.demand) && b->level() == a->level());
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (const uint8_t flags : {0, 1, 2, 4, 8, 16, 17})
        out.push_back(Made().byte(flags).byte(flags));
    Bytes level(2 + 48 + 1); // a level that does not exist, in the offer
    level[0] = signs;
    level[50] = 7;
    out.push_back(level);
    Bytes key(2 + hello_bytes + 1 + answer_bytes); // the listener's key: zero, if it were known
    key[0] = signs;
    key[2 + hello_bytes + 1 + 52] = 1;
    out.push_back(key);
    return out;
}
