// Encoded blocks, indices and values of other ranks in a compressed all-reduce.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the method and its parameters, then for each exchange a mask, which is XORed onto what
// ranks with the same vector would have sent.
#include "tests/fuzz/fuzz.h"

#include "base/status.h"
#include "compression/method.h"
#include "compression/method_info.h"

#include <memory>

using namespace dtrain;
using namespace dtrain::compression;
using fuzz::Bytes;

namespace {

constexpr uint32_t kinds[] = {DTRAIN_COMPRESS_BF16, DTRAIN_COMPRESS_F16,
                              DTRAIN_COMPRESS_INT8, DTRAIN_COMPRESS_ONEBIT,
                              DTRAIN_COMPRESS_TOPK, DTRAIN_COMPRESS_POWERSGD};
constexpr int32_t most_ranks = 4;
constexpr int most_steps = 1000; // of a run

struct Chosen {
    dtrain_compressor_params_t params{};
    Group group;
    bool average = false;
};

Chosen choose(fuzz::Input &in) {
    Chosen out;
    out.params.struct_size = sizeof out.params;
    out.params.kind = kinds[in.byte() % std::size(kinds)];
    out.params.count = 1 + in.byte();
    const uint8_t how = in.byte();
    if (out.params.kind == DTRAIN_COMPRESS_TOPK) out.params.ratio = (1 + how % 8) / 8.0;
    if (out.params.kind == DTRAIN_COMPRESS_POWERSGD)
        out.params.rows = 1 + how % 8, out.params.rank = 1 + how / 8 % 3;
    else if (out.params.kind != DTRAIN_COMPRESS_TOPK)
        out.params.block = 8 * (1 + how % 8);
    const uint8_t flags = in.byte();
    if (flags & 1) out.params.flags |= DTRAIN_COMPRESS_NO_FEEDBACK;
    if (flags & 2 && out.params.kind == DTRAIN_COMPRESS_INT8)
        out.params.flags |= DTRAIN_COMPRESS_STOCHASTIC;
    out.average = (flags & 4) != 0;
    out.group.size = 1 + flags / 8 % most_ranks;
    out.group.rank = flags / 32 % out.group.size;
    return out;
}

// The bytes that the call writes, and what equal ranks would write there.
Bytes genuine(const collectives::Call &call, const Group &group) {
    const auto *from = static_cast<const uint8_t *>(call.send);
    const size_t ranks = size_t(group.size);
    Bytes out;
    if (call.kind == collectives::Kind::allreduce) {
        out.assign(from, from + call.count * sizeof(float));
        return out;
    }
    const bool all = call.kind == collectives::Kind::alltoall;
    for (size_t r = 0; r < ranks; r++) {
        const uint8_t *part = from + (all ? size_t(group.rank) * call.count : 0);
        out.insert(out.end(), part, part + call.count);
    }
    return out;
}

void exchange(const collectives::Call &call, const Group &group, fuzz::Input &in) {
    Bytes bytes = genuine(call, group);
    const uint16_t at = in.take<uint16_t>();
    const Bytes mask = in.bytes(in.byte());
    for (size_t i = 0; i < mask.size() && !bytes.empty(); i++)
        bytes[(at + i) % bytes.size()] ^= mask[i];
    if (!bytes.empty()) std::memcpy(call.recv, bytes.data(), bytes.size());
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const Chosen chosen = choose(in);
    Params params;
    if (read_params(chosen.params, params) != DTRAIN_OK) return 0;
    const std::unique_ptr<Method> method = make_method(params, chosen.group);
    std::vector<float> vector(params.count), result(params.count);
    for (size_t i = 0; i < vector.size(); i++) vector[i] = float(int(i * 7 % 13) - 6) / 4;
    for (int run = 0; run < 2; run++) {
        method->begin(vector.data(), result.data(), chosen.average);
        for (int step = 0;; step++) {
            FUZZ_REQUIRE(step < most_steps);
            const Action action = method->next();
            if (action.kind == Action::Kind::done) break;
            if (action.kind == Action::Kind::corrupt) {
                FUZZ_REQUIRE(action.rank >= 0 && action.rank < chosen.group.size);
                FUZZ_REQUIRE(*error_text() != 0);
                method->reset();
                break;
            }
            if (action.kind == Action::Kind::call) exchange(action.call, chosen.group, in);
        }
        (void)method->kept_square();
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (uint8_t kind = 0; kind < std::size(kinds); kind++)
        for (const uint8_t flags : {8, 1 | 16 | 32, 2 | 4 | 24}) {
            Made made;
            made.byte(kind).byte(uint8_t(30 + kind)).byte(2).byte(flags);
            for (int i = 0; i < 8; i++) made.put(uint16_t(0)).byte(0);
            out.push_back(made);
        }
    for (const uint8_t mask : {1, 255}) // an index out of order, or range
        out.push_back(
            Made().byte(4).byte(30).byte(2).byte(16).put(uint16_t(8)).byte(4).all(Bytes(4, mask)));
    return out;
}
