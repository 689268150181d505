// Words and reports by which ranks agree on gradients, of a rank that may lie.
// SPDX-License-Identifier: Apache-2.0
//
// Rank 0 is driven; the input has the other rank's words and reports, which are genuine ones of a
// second negotiation with changes. Input: limits, then steps.
#include "tests/fuzz/fuzz.h"

#include "gradients/negotiation.h"

#include <map>

using namespace dtrain;
using namespace dtrain::gradients;
using fuzz::Bytes;

namespace {

enum class Step : uint8_t { submit, cycle, change, raw, join, close, later, count };
constexpr int32_t ranks = 2;
constexpr uint32_t dtypes[] = {DTRAIN_F32, DTRAIN_F16, DTRAIN_I64, DTRAIN_U8};

Limits limits_of(uint8_t choice) {
    Limits limits;
    limits.bucket_bytes = choice & 1 ? 64 : 1 << 20;
    limits.known_tensors = choice & 2 ? 2 : 70;
    limits.fresh_bytes = choice & 4 ? 64 : 4096;
    if (choice & 8) limits.stall_warn_ns = 3, limits.stall_fail_ns = 6;
    return limits;
}

struct Rig {
    explicit Rig(const Limits &both)
        : limits(both), sides{{0, ranks, limits}, {1, ranks, limits}} {}

    void submit(int side, fuzz::Input &in) {
        Submission s;
        s.name = "t" + std::to_string(in.byte() % 80);
        const uint8_t kind = in.byte();
        s.spec = {.count = 1 + uint64_t(kind & 15),
                  .dtype = uint8_t(dtypes[kind >> 4 & 3]),
                  .op = uint8_t(kind & 64 ? DTRAIN_MAX : DTRAIN_SUM)};
        s.priority = int8_t(in.byte());
        s.id = ++ids;
        s.submitted_ns = now;
        if (kind & 128) s.expires_ns = now + 2;
        if (check_tensor(s.name, s.spec.count, s.spec.dtype, s.spec.op) != DTRAIN_OK) return;
        const std::string name = s.name;
        if (sides[side].submit(std::move(s)) == DTRAIN_OK && side == 0) waiting[ids] = name;
    }
    // What rank 0 must do; a submission ends once.
    void carry_out(const Actions &actions) {
        for (const Actions::Failure &failure : actions.failures)
            FUZZ_REQUIRE(failure.status < 0 && waiting.erase(failure.id) == 1);
        FUZZ_REQUIRE(actions.closed_by < ranks && actions.last_joined < ranks);
        over |= actions.closed_by >= 0;
    }
    // The other rank's words and report, as rank 0 hears them, are changed by the input; false: the
    // ranks' ways part.
    bool cycle(fuzz::Input &in, bool changes) {
        Bits own = sides[0].begin(now), other = sides[1].begin(now);
        if (own.size() != other.size()) return false;
        Bits heard = other;
        if (changes) heard[in.byte() % heard.size()] ^= in.take<uint64_t>();
        for (size_t w = 0; w < own.size(); w++) heard[w] &= own[w], other[w] &= own[w];
        bool exchange = false, second = false;
        Actions actions, ignored;
        if (sides[0].reduced(heard, exchange, actions) != DTRAIN_OK) return false;
        carry_out(actions);
        if (sides[1].reduced(other, second, ignored) != DTRAIN_OK) return false;
        return exchange ? gather(in, changes) : reduce();
    }
    bool gather(fuzz::Input &in, bool changes) {
        const Bytes genuine = sides[1].announce(now);
        Bytes heard = genuine;
        if (changes) {
            const Bytes mask = in.bytes(in.byte());
            const uint16_t at = in.take<uint16_t>();
            for (size_t i = 0; i < mask.size(); i++) heard[(at + i) % heard.size()] ^= mask[i];
        }
        return gathered(genuine, heard);
    }
    bool gathered(const Bytes &genuine, const Bytes &heard) {
        const Bytes own = sides[0].announce(now);
        const uint64_t longest = sides[0].longest_report();
        FUZZ_REQUIRE(own.size() <= longest);
        const size_t words = (longest - limits.fresh_bytes - report_bytes(0)) / 16;
        Report report;
        if (decode(heard, words, report) == DTRAIN_OK) {
            Report again;
            FUZZ_REQUIRE(decode(encode(report), words, again) == DTRAIN_OK);
            FUZZ_REQUIRE(encode(again) == encode(report));
        }
        const std::span<const uint8_t> first[] = {own, heard}, second[] = {own, genuine};
        Actions actions, ignored;
        if (sides[0].gathered(first, now, actions) != DTRAIN_OK) return false;
        carry_out(actions);
        return sides[1].gathered(second, now, ignored) == DTRAIN_OK && !over && reduce();
    }
    bool reduce() {
        for (int buckets = 0; buckets < 100; buckets++) {
            Bucket bucket, other;
            if (!sides[0].next_bucket(bucket)) return true;
            FUZZ_REQUIRE(!bucket.items.empty());
            for (const Bucket::Item &item : bucket.items)
                FUZZ_REQUIRE(item.id == 0 || waiting.erase(item.id) == 1);
            Actions actions, ignored;
            sides[0].finished(bucket, actions);
            carry_out(actions);
            if (sides[1].next_bucket(other)) sides[1].finished(other, ignored);
        }
        return true;
    }

    const Limits limits;
    Negotiation sides[ranks];
    std::map<uint64_t, std::string> waiting; // of rank 0
    uint64_t ids = 0;
    int64_t now = 1;
    bool over = false;
};

bool act(Rig &rig, fuzz::Input &in) {
    const uint8_t step = in.byte();
    const int side = step >> 7;
    switch (Step((step & 127) % uint8_t(Step::count))) {
    case Step::submit: rig.submit(side, in); return true;
    case Step::cycle: return rig.cycle(in, false);
    case Step::change: return rig.cycle(in, true);
    case Step::raw: {
        bool exchange = false;
        Actions actions;
        if (side == 0) {
            const Bytes report = in.bytes(in.take<uint16_t>() % 1024);
            return rig.gathered(rig.sides[1].announce(rig.now), report);
        }
        Bits words = rig.sides[0].begin(rig.now);
        for (uint64_t &word : words) word ^= in.take<uint64_t>();
        if (rig.sides[0].reduced(words, exchange, actions) != DTRAIN_OK) return false;
        rig.carry_out(actions);
        return rig.reduce();
    }
    case Step::join: rig.sides[side].join(); return true;
    case Step::close: rig.sides[side].close(); return true;
    default: rig.now += in.byte(); return true;
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    Rig rig(limits_of(in.byte()));
    for (int steps = 0; !in.empty() && !rig.over && steps < 200; steps++)
        if (!act(rig, in)) break;
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    constexpr uint8_t other = 128;
    const auto submit = [](Made &made, uint8_t side, uint8_t name, uint8_t kind) {
        made.byte(uint8_t(side | uint8_t(Step::submit))).byte(name).byte(kind).byte(name);
    };
    const auto cycles = [](Made &made, int n) {
        while (n-- > 0) made.byte(uint8_t(Step::cycle));
    };
    std::vector<Bytes> out;
    for (const uint8_t limits : {0, 1, 2, 4, 8, 15}) {
        Made made;
        made.byte(limits);
        for (const uint8_t name : {1, 2, 3, 4})
            for (const uint8_t side : {uint8_t{0}, other}) submit(made, side, name, name);
        cycles(made, 3);
        submit(made, 0, 1, 1);
        submit(made, other, 1, 2); // of another size
        submit(made, 0, 5, 64);
        cycles(made, 2);
        submit(made, 0, 6, 128); // expires
        for (int i = 0; i < 4; i++) made.byte(uint8_t(Step::later)).byte(4), cycles(made, 1);
        submit(made, 0, 2, 2);
        submit(made, 0, 7, 64);
        submit(made, 0, 8, 0);
        made.byte(uint8_t(Step::join) | other);
        cycles(made, 3);
        made.byte(uint8_t(Step::join));
        cycles(made, 3);
        made.byte(uint8_t(Step::close) | other);
        cycles(made, 2);
        out.push_back(made);
    }
    Made lies;
    lies.byte(0);
    submit(lies, 0, 1, 1);
    submit(lies, other, 1, 1);
    lies.byte(uint8_t(Step::change)).byte(0).put(uint64_t{0});
    lies.byte(8).all(Bytes(8, 1)).put(uint16_t(16));
    out.push_back(lies);
    Report report;
    report.fresh = {{"t1", {4, DTRAIN_F32, DTRAIN_SUM}, 1, true}};
    const std::vector<uint8_t> encoded = encode(report);
    Made raw;
    raw.byte(0).byte(uint8_t(Step::raw)).put(uint16_t(encoded.size())).all(encoded);
    raw.byte(uint8_t(Step::raw) | other).put(uint64_t{0}).put(uint64_t{1});
    out.push_back(raw);
    return out;
}
