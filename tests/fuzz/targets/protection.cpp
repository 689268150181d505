// The exchange of keys and the records of a protected connection, with somebody on the way.
// SPDX-License-Identifier: Apache-2.0
//
// Input: levels, the cipher and the size of payloads, a mask for the responder's offer, then steps:
// `initiator` or `responder` sends a record, and what happens to it on the way.
#include "tests/fuzz/fuzz.h"

#include "protection/guard.h"

using namespace dtrain;
using namespace dtrain::protection;
using fuzz::Bytes;

namespace {

enum class Way : uint8_t { none, flip, repeat, reflect, cut, foreign, count };

enum How : uint8_t { one_cipher = 1, long_payloads = 2 };

struct Side {
    explicit Side(Level level) : guard(level) {}
    Bytes seal(const Bytes &payload) {
        Bytes record(payload.size() + overhead_bytes);
        std::copy(payload.begin(), payload.end(), record.begin() + header_bytes);
        FUZZ_REQUIRE(guard.seal(record.data(), payload.size()) == record.size());
        return record;
    }
    // As a transport does: the length, whether all has arrived, then the record.
    bool open(Bytes record, Bytes &payload) {
        if (record.size() < header_bytes) return false;
        const size_t length = Guard::length_of(record.data());
        if (length == 0 || record.size() < length + overhead_bytes) return false;
        if (!guard.open(record.data(), length)) return false;
        payload.assign(record.begin() + header_bytes, record.begin() + long(header_bytes + length));
        return true;
    }
    Guard guard;
    std::vector<Bytes> sent;
    size_t opened = 0;   // records of the peer
    bool broken = false; // a record did not open: a transport ends the connection
};

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t levels = in.byte();
    Side sides[2]{Side(Level(levels % 3)), Side(Level(levels / 3 % 3))};
    const uint8_t how = in.byte();
    Offer genuine[2] = {sides[0].guard.offer(), sides[1].guard.offer()};
    if (how & one_cipher) // of processors without AES
        genuine[0].ciphers = genuine[1].ciphers = bit_of(Cipher::chacha20_poly1305);
    Offer heard = genuine[1];
    bool changed = false;
    for (size_t i = 0, n = levels >= 128 ? sizeof heard : 0; i < n; i++) {
        const uint8_t mask = in.byte();
        reinterpret_cast<uint8_t *>(&heard)[i] ^= mask;
        changed |= mask != 0;
    }
    const Bytes transcript{1, 2, 3};
    const Status a = sides[0].guard.agree(Role::initiator, "secret", heard, false, transcript);
    const Status b = sides[1].guard.agree(Role::responder, "secret", genuine[0], false, transcript);
    FUZZ_REQUIRE(b == DTRAIN_OK && (changed || a == DTRAIN_OK));
    if (a != DTRAIN_OK || sides[0].guard.level() == Level::none ||
        sides[1].guard.level() == Level::none)
        return 0;
    // A side that was given another key, level or cipher has other keys. Not every change is one:
    // the zeros of an offer are covered by the handshake's MACs.
    const bool same =
        heard.key == genuine[1].key && sides[0].guard.level() == sides[1].guard.level();

    while (!in.empty()) {
        const uint8_t step = in.byte();
        Side &from = sides[step & 1], &to = sides[1 - (step & 1)];
        const Way way = Way((step >> 1) % uint8_t(Way::count));
        Bytes payload = in.bytes(1 + in.byte());
        if (payload.empty()) break;
        if (how & long_payloads) payload.resize(4000);
        Bytes record = from.seal(payload);
        from.sent.push_back(record);
        Side &at = way == Way::reflect ? from : to;
        const uint16_t place = in.take<uint16_t>();
        switch (way) {
        case Way::flip: record[place % record.size()] ^= uint8_t(1 << (place >> 13)); break;
        case Way::repeat: record = from.sent[place % from.sent.size()]; break;
        case Way::cut: record.resize(place % (record.size() + 1)); break;
        case Way::foreign: record = in.bytes(64); break;
        default: break;
        }
        if (at.broken) continue;
        const Side &author = sides[&at == &sides[0] ? 1 : 0];
        const bool is_next = at.opened < author.sent.size() && record == author.sent[at.opened];
        Bytes got;
        const bool opened = at.open(record, got);
        FUZZ_REQUIRE(is_next || !opened);
        FUZZ_REQUIRE(!opened || std::equal(got.begin(), got.end(), record.begin() + header_bytes) ||
                     at.guard.level() == Level::encrypted);
        if (same && !changed) FUZZ_REQUIRE(opened == is_next);
        at.broken = !opened;
        at.opened += opened;
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (const uint8_t levels : {0, 1, 4, 8}) {
        Made made;
        made.byte(levels).byte(0);
        for (const uint8_t step : {0, 1, 0})
            made.byte(step).byte(4).all(Bytes{1, 2, 3, 4, 5}).put(uint16_t(0));
        out.push_back(made);
    }
    for (uint8_t way = 1; way < uint8_t(Way::count); way++) {
        Made made;
        made.byte(8).byte(0).byte(0).byte(2).all(Bytes{1, 2, 3}).put(uint16_t(0));
        made.byte(uint8_t(way << 1)).byte(2).all(Bytes{1, 2, 3}).put(uint16_t(5));
        out.push_back(made);
    }
    for (const uint8_t levels : {4, 8})
        for (const uint8_t how : {one_cipher, long_payloads}) {
            Made made;
            made.byte(levels).byte(how);
            for (const uint8_t step : {0, 1, 0, 2}) // the last one is changed
                made.byte(step).byte(4).all(Bytes{1, 2, 3, 4, 5}).put(uint16_t(9));
            out.push_back(made);
        }
    constexpr uint8_t masked = 0x80 + 8 - 0x80 % 3;
    for (size_t i = 0; i < sizeof(Offer); i++) { // a level that does not exist, no cipher, no key
        Bytes offered(2 + sizeof(Offer));
        offered[0] = masked;
        offered[2 + i] = 4;
        out.push_back(offered);
    }
    return out;
}
