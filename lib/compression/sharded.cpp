// The stages of compression by blocks.
// SPDX-License-Identifier: Apache-2.0
#include "compression/sharded.h"

#include "compression/elements.h"
#include "device/kernels.h"

#include <algorithm>

namespace dtrain::compression {
namespace {

constexpr uint32_t default_block = 256, max_block = 65536, block_unit = 8;

constexpr uint64_t quotient_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

} // namespace

Status read_block(const dtrain_compressor_params_t &given, Params &out) {
    out.block = given.block == 0 ? default_block : given.block;
    if (out.block % block_unit != 0 || out.block > max_block)
        return fail(DTRAIN_ERR_INVALID, "compressor: block %u: must be a multiple of %u up to %u",
                    out.block, block_unit, max_block);
    return DTRAIN_OK;
}

std::unique_ptr<Method> make_sharded(const Params &params, Group group) {
    return std::make_unique<Sharded>(params, group);
}

Sharded::Sharded(const Params &params, Group group)
    : params_(params), group_(group), codec_(*find_method(params.kind)->codec),
      block_bytes_(codec_.bytes(params.block)), blocks_(quotient_up(params.count, params.block)),
      shard_blocks_(quotient_up(blocks_, uint64_t(group.size))),
      shard_bytes_(shard_blocks_ * block_bytes_),
      first_own_(std::min(blocks_, shard_blocks_ * uint64_t(group.rank))),
      out_(shard_bytes_ * uint64_t(group.size)), in_(out_.size()), decoded_(params.block),
      block_sum_(params.block) {
    if (!params.has_feedback()) return;
    kept_.resize(params.count);
    kept_sum_.resize(shard_blocks_ * params.block);
}

void Sharded::begin(const float *send, float *recv, bool average) {
    send_ = send;
    recv_ = recv;
    average_ = average;
    stage_ = Stage::encode;
    at_ = 0;
    runs_++;
}

void Sharded::reset() {
    std::fill(kept_.begin(), kept_.end(), 0.0f);
    std::fill(kept_sum_.begin(), kept_sum_.end(), 0.0f);
    runs_ = 0;
}

double Sharded::kept_square() const {
    return square_sum(kept_.data(), kept_.size()) + square_sum(kept_sum_.data(), kept_sum_.size());
}

template <class F> bool Sharded::some_blocks(uint64_t last, F f) {
    uint64_t few = std::max<uint64_t>(1, elements_per_step / params_.block);
    uint64_t end = std::min(last, at_ + few);
    for (; at_ < end; at_++) {
        uint64_t first = at_ * params_.block;
        f(at_, first, uint32_t(std::min<uint64_t>(params_.block, params_.count - first)));
    }
    return at_ == last;
}

Action Sharded::next() {
    switch (stage_) {
    case Stage::encode:
        if (!some_blocks(blocks_, [&](auto b, auto first, auto n) { encode_block(b, first, n); }))
            return {};
        return exchange(collectives::Kind::alltoall, Stage::sum, first_own_);
    case Stage::sum:
        if (!some_blocks(std::min(blocks_, first_own_ + shard_blocks_),
                         [&](auto b, auto, auto n) { sum_block(b, n); }))
            return {};
        return exchange(collectives::Kind::allgather, Stage::decode, 0);
    case Stage::decode:
        if (!some_blocks(blocks_, [&](auto b, auto first, auto n) {
                codec_.decode(in_.data() + b * block_bytes_, n, recv_ + first);
            }))
            return {};
        stage_ = Stage::done;
        break;
    case Stage::done: break;
    }
    return {.kind = Action::Kind::done};
}

Action Sharded::exchange(collectives::Kind kind, Stage then, uint64_t first_block) {
    stage_ = then;
    at_ = first_block;
    return {.kind = Action::Kind::call,
            .call = {.kind = kind, .send = out_.data(), .recv = in_.data(), .count = shard_bytes_}};
}

uint64_t Sharded::random(uint64_t block, uint64_t side) const {
    return mix64(mix64(params_.seed + uint64_t(group_.rank)) + mix64(runs_ * 2 + side) + block);
}

void Sharded::encode(const float *x, uint32_t n, uint8_t *out, uint64_t random) const {
    codec_.encode(x, n, out, params_.is_stochastic(), random);
}

// Encodes the vector plus what earlier runs kept; keeps what the encoding loses.
void Sharded::encode_block(uint64_t block, uint64_t first, uint32_t n) {
    uint8_t *code = out_.data() + block * block_bytes_;
    if (kept_.empty()) return encode(send_ + first, n, code, random(block, 0));
    float *kept = kept_.data() + first;
    accumulate(kept, send_ + first, n);
    encode(kept, n, code, random(block, 0));
    codec_.decode(code, n, decoded_.data());
    keep_rest(kept, decoded_.data(), n);
}

// in_ holds the shard's blocks from all ranks, in rank order; the sum goes to the front of out_.
void Sharded::sum_block(uint64_t block, uint32_t n) {
    const uint64_t in_shard = block - first_own_, at = in_shard * block_bytes_;
    float *sum = block_sum_.data();
    codec_.decode(in_.data() + at, n, sum);
    for (int32_t r = 1; r < group_.size; r++) {
        codec_.decode(in_.data() + uint64_t(r) * shard_bytes_ + at, n, decoded_.data());
        accumulate(sum, decoded_.data(), n);
    }
    if (average_) device::scale(sum, n, DTRAIN_F32, uint32_t(group_.size));
    uint8_t *code = out_.data() + at;
    if (kept_sum_.empty()) return encode(sum, n, code, random(block, 1));
    float *kept = kept_sum_.data() + in_shard * params_.block;
    accumulate(kept, sum, n);
    encode(kept, n, code, random(block, 1));
    codec_.decode(code, n, decoded_.data());
    keep_rest(kept, decoded_.data(), n);
}

} // namespace dtrain::compression
