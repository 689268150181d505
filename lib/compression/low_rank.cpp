// The stages of PowerSGD.
// SPDX-License-Identifier: Apache-2.0
#include "compression/low_rank.h"

#include "compression/elements.h"
#include "compression/matrix.h"
#include "compression/method_info.h"
#include "compression/uncompressed.h"
#include "device/kernels.h"

#include <algorithm>
#include <cmath>

namespace dtrain::compression {
namespace {

constexpr uint32_t default_rank = 2, max_rank = 64;

Status read_matrix(const dtrain_compressor_params_t &given, Params &out) {
    out.rank = given.rank == 0 ? default_rank : given.rank;
    if (out.rank > max_rank)
        return fail(DTRAIN_ERR_INVALID, "compressor: rank %u: must be at most %u", out.rank,
                    max_rank);
    if (given.rows != 0 && given.count % given.rows != 0)
        return fail(DTRAIN_ERR_INVALID,
                    "compressor: %llu elements cannot be a matrix of %llu rows; set rows to 0",
                    static_cast<unsigned long long>(given.count),
                    static_cast<unsigned long long>(given.rows));
    out.rows = given.rows != 0 ? given.rows : uint64_t(std::ceil(std::sqrt(double(given.count))));
    out.columns = (given.count + out.rows - 1) / out.rows;
    return DTRAIN_OK;
}

std::unique_ptr<Method> make_low_rank(const Params &params, Group group) {
    if (LowRank::pays(params)) return std::make_unique<LowRank>(params, group);
    return std::make_unique<Uncompressed>(params, group);
}

} // namespace

extern const MethodInfo powersgd_method = {
    .name = "powersgd",
    .formula =
        "P = M Q, summed over ranks and orthonormalized; Q = M^T P, summed over ranks; the "
        "result is P Q^T, and Q the start of the next step. A column of Q that became zero or "
        "NaN is drawn anew from the seed",
    .source = "Vogels et al. 2019",
    .bytes = "rank (rows + columns) / elements",
    .cost = "3 x rank multiplications",
    .use = "large matrices, any number of ranks",
    .read = read_matrix,
    .make = make_low_rank,
};

bool LowRank::pays(const Params &params) {
    return params.rank * (params.rows + params.columns) < params.count;
}

LowRank::LowRank(const Params &params, Group group)
    : params_(params), group_(group), p_(params.rows * params.rank),
      q_(params.columns * params.rank), next_q_(q_.size()), row_(params.columns) {
    if (params.has_feedback()) kept_.resize(params.count);
    reset();
}

void LowRank::begin(const float *send, float *recv, bool average) {
    send_ = send;
    vector_ = kept_.empty() ? send : kept_.data();
    recv_ = recv;
    average_ = average;
    stage_ = Stage::multiply;
    at_ = 0;
}

void LowRank::reset() {
    std::fill(kept_.begin(), kept_.end(), 0.0f);
    fill_random(q_.data(), q_.size(), mix64(params_.seed));
}

double LowRank::kept_square() const { return square_sum(kept_.data(), kept_.size()); }

template <class F> bool LowRank::some_rows(F f) {
    uint64_t few = std::max<uint64_t>(1, elements_per_step / params_.columns);
    uint64_t end = std::min(params_.rows, at_ + few);
    for (; at_ < end; at_++) {
        uint64_t first = std::min(params_.count, at_ * params_.columns);
        f(at_, first, std::min(params_.columns, params_.count - first));
    }
    return at_ == params_.rows;
}

Action LowRank::sum(std::vector<float> &factor, Stage then) {
    stage_ = then;
    at_ = 0;
    return {.kind = Action::Kind::call,
            .call = {.kind = collectives::Kind::allreduce,
                     .send = factor.data(),
                     .recv = factor.data(),
                     .count = factor.size(),
                     .dtype = DTRAIN_F32,
                     .op = DTRAIN_SUM}};
}

Action LowRank::next() {
    switch (stage_) {
    case Stage::multiply:
        if (!some_rows([&](auto row, auto first, auto n) { multiply_row(row, first, n); }))
            return {};
        return sum(p_, Stage::orthonormalize);
    case Stage::orthonormalize:
        orthonormalize(p_, params_.rows);
        std::fill(next_q_.begin(), next_q_.end(), 0.0f);
        stage_ = Stage::transpose;
        return {};
    case Stage::transpose:
        if (!some_rows([&](auto row, auto first, auto n) {
                for (uint32_t k = 0; k < params_.rank; k++)
                    add_multiple(next_q_.data() + k * params_.columns, p_[k * params_.rows + row],
                                 vector_ + first, n);
            }))
            return {};
        q_.swap(next_q_);
        return sum(q_, Stage::expand);
    case Stage::expand:
        if (some_rows([&](auto row, auto first, auto n) { expand_row(row, first, n); }))
            stage_ = Stage::renew;
        return {};
    case Stage::renew:
        renew_start();
        stage_ = Stage::done;
        break;
    case Stage::done: break;
    }
    return {.kind = Action::Kind::done};
}

void LowRank::multiply_row(uint64_t row, uint64_t first, uint64_t n) {
    if (!kept_.empty()) accumulate(kept_.data() + first, send_ + first, n);
    for (uint32_t k = 0; k < params_.rank; k++)
        p_[k * params_.rows + row] = dot(vector_ + first, q_.data() + k * params_.columns, n);
}

// Computes a row of P Q^T, the approximate sum. Every rank keeps its own vector's difference from
// the mean.
void LowRank::expand_row(uint64_t row, uint64_t first, uint64_t n) {
    std::fill_n(row_.data(), n, 0.0f);
    for (uint32_t k = 0; k < params_.rank; k++)
        add_multiple(row_.data(), p_[k * params_.rows + row], q_.data() + k * params_.columns, n);
    if (!average_) std::copy_n(row_.data(), n, recv_ + first);
    device::scale(row_.data(), n, DTRAIN_F32, uint32_t(group_.size));
    if (average_) std::copy_n(row_.data(), n, recv_ + first);
    if (!kept_.empty()) keep_rest(kept_.data() + first, row_.data(), n);
}

// Replaces columns that are zero or not finite, which would stay so in all later runs.
void LowRank::renew_start() {
    for (uint32_t k = 0; k < params_.rank; k++) {
        float *column = q_.data() + k * params_.columns;
        double square = square_sum(column, params_.columns);
        if (!(square > 0 && square < 1e300))
            fill_random(column, params_.columns, mix64(params_.seed + k + 1));
    }
}

} // namespace dtrain::compression
