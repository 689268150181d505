// The stages of top-k compression.
// SPDX-License-Identifier: Apache-2.0
#include "compression/sparse.h"

#include "compression/elements.h"
#include "compression/method_info.h"
#include "device/kernels.h"

#include <algorithm>
#include <cmath>

namespace dtrain::compression {
namespace {

constexpr double default_ratio = 0.01;

Status read_ratio(const dtrain_compressor_params_t &given, Params &out) {
    double ratio = given.ratio == 0 ? default_ratio : given.ratio;
    if (!(ratio > 0 && ratio <= 1))
        return fail(DTRAIN_ERR_INVALID, "compressor: ratio %g: must be above 0 and at most 1",
                    ratio);
    if (given.count > UINT32_MAX)
        return fail(DTRAIN_ERR_LIMIT,
                    "compressor: topk numbers elements with 32 bits; split the "
                    "vector of %llu elements",
                    static_cast<unsigned long long>(given.count));
    auto kept = uint64_t(std::ceil(ratio * double(given.count)));
    out.kept = std::clamp<uint64_t>(kept, 1, given.count);
    return DTRAIN_OK;
}

std::unique_ptr<Method> make_sparse(const Params &params, Group group) {
    return std::make_unique<Sparse>(params, group);
}

} // namespace

extern const MethodInfo topk_method = {
    .name = "topk",
    .formula =
        "the k = ceil(ratio x count) greatest magnitudes, the first of equal ones; all ranks "
        "gather indices and values and add them up in rank order",
    .source = "Aji and Heafield 2017",
    .bytes = "2 x ratio, *times the ranks / 2*",
    .cost = "three passes of selection",
    .use = "very slow networks, few ranks, large models",
    .read = read_ratio,
    .make = make_sparse,
};

Sparse::Sparse(const Params &params, Group group)
    : params_(params), group_(group), own_(params.kept), all_(params.kept * uint64_t(group.size)) {
    if (params.has_feedback()) kept_.resize(params.count);
}

void Sparse::begin(const float *send, float *recv, bool average) {
    send_ = send;
    vector_ = kept_.empty() ? send : kept_.data();
    recv_ = recv;
    average_ = average;
    stage_ = Stage::add;
    at_ = taken_ = 0;
    selection_.begin(params_.kept);
}

void Sparse::reset() { std::fill(kept_.begin(), kept_.end(), 0.0f); }

double Sparse::kept_square() const { return square_sum(kept_.data(), kept_.size()); }

template <class F> bool Sparse::slice(Stage then, F f) {
    uint64_t n = std::min(elements_per_step, params_.count - at_);
    f(at_, n);
    at_ += n;
    if (at_ < params_.count) return false;
    at_ = 0;
    stage_ = then;
    return true;
}

Action Sparse::next() {
    switch (stage_) {
    case Stage::add:
        if (slice(Stage::count, [&](uint64_t first, uint64_t n) {
                if (!kept_.empty()) accumulate(kept_.data() + first, send_ + first, n);
                selection_.count(vector_ + first, n);
            }))
            selection_.rank();
        return {};
    case Stage::count:
        if (slice(Stage::take, [&](auto first, auto n) { selection_.count(vector_ + first, n); }))
            selection_.rank();
        return {};
    case Stage::take:
        if (!slice(Stage::clear, [&](auto first, auto n) { take(first, n); })) return {};
        return {.kind = Action::Kind::call,
                .call = {.kind = collectives::Kind::allgather,
                         .send = own_.data(),
                         .recv = all_.data(),
                         .count = own_.size() * sizeof(Entry)}};
    case Stage::clear:
        slice(Stage::sum, [&](auto first, auto n) { std::fill_n(recv_ + first, n, 0.0f); });
        return {};
    case Stage::sum: return sum();
    case Stage::divide:
        slice(Stage::done, [&](auto first, auto n) {
            device::scale(recv_ + first, n, DTRAIN_F32, uint32_t(group_.size));
        });
        return {};
    case Stage::done: break;
    }
    return {.kind = Action::Kind::done};
}

void Sparse::take(uint64_t first, uint64_t n) {
    selection_.take(vector_ + first, n, [&](uint64_t i) {
        own_[taken_++] = {uint32_t(first + i), vector_[first + i]};
        if (!kept_.empty()) kept_[first + i] = 0;
    });
}

// Checks the indices, because they come from other processes.
Action Sparse::sum() {
    uint64_t end = std::min<uint64_t>(all_.size(), at_ + elements_per_step);
    for (; at_ < end; at_++) {
        const Entry &entry = all_[at_];
        bool first_of_rank = at_ % params_.kept == 0;
        bool ascends = first_of_rank || all_[at_ - 1].index < entry.index;
        if (entry.index >= params_.count || !ascends) {
            auto rank = int32_t(at_ / params_.kept);
            fail(DTRAIN_ERR_CORRUPT,
                 "compressed allreduce: rank %d sent index %u of %llu elements as its entry %llu, "
                 "which is out of range or order",
                 rank, entry.index, static_cast<unsigned long long>(params_.count),
                 static_cast<unsigned long long>(at_ % params_.kept));
            return {.kind = Action::Kind::corrupt, .rank = rank};
        }
        recv_[entry.index] += entry.value;
    }
    if (at_ < all_.size()) return {};
    at_ = 0;
    stage_ = average_ ? Stage::divide : Stage::done;
    return {};
}

} // namespace dtrain::compression
