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
constexpr uint64_t plain_piece = 4096; // elements

// What the caller has given as pairs of rows and columns.
Status read_pairs(const dtrain_compressor_params_t &given, Params &out) {
    if (given.matrices == nullptr)
        return fail(DTRAIN_ERR_INVALID, "compressor: matrices is NULL, and matrix_count %llu",
                    static_cast<unsigned long long>(given.matrix_count));
    if (given.matrix_count == 0 || given.matrix_count > given.count)
        return fail(
            DTRAIN_ERR_INVALID,
            "compressor: matrix_count %llu: it must be 1 to %llu, the elements of the vector",
            static_cast<unsigned long long>(given.matrix_count),
            static_cast<unsigned long long>(given.count));
    if (given.rows != 0)
        return fail(DTRAIN_ERR_INVALID, "compressor: give rows or matrices, not both");
    uint64_t left = given.count;
    for (uint64_t i = 0; i < given.matrix_count; i++) {
        const uint64_t rows = given.matrices[2 * i], columns = given.matrices[2 * i + 1];
        if (rows == 0 || columns == 0 || columns > left / rows)
            return fail(
                DTRAIN_ERR_INVALID,
                "compressor: matrix %llu of %llu rows and %llu columns: the vector has %llu "
                "elements left for it",
                static_cast<unsigned long long>(i), static_cast<unsigned long long>(rows),
                static_cast<unsigned long long>(columns), static_cast<unsigned long long>(left));
        left -= rows * columns;
        out.matrices.push_back({rows, columns});
    }
    if (left > 0)
        return fail(DTRAIN_ERR_INVALID,
                    "compressor: the matrices leave %llu elements of the vector: describe these, "
                    "too, for example as one row",
                    static_cast<unsigned long long>(left));
    return DTRAIN_OK;
}

Status read_matrices(const dtrain_compressor_params_t &given, Params &out) {
    out.rank = given.rank == 0 ? default_rank : given.rank;
    if (out.rank > max_rank)
        return fail(DTRAIN_ERR_INVALID, "compressor: rank %u: must be at most %u", out.rank,
                    max_rank);
    if (given.matrices != nullptr || given.matrix_count != 0) return read_pairs(given, out);
    if (given.rows != 0 && given.count % given.rows != 0)
        return fail(DTRAIN_ERR_INVALID,
                    "compressor: %llu elements cannot be a matrix of %llu rows; set rows to 0",
                    static_cast<unsigned long long>(given.count),
                    static_cast<unsigned long long>(given.rows));
    const uint64_t rows =
        given.rows != 0 ? given.rows : uint64_t(std::ceil(std::sqrt(double(given.count))));
    out.matrices.push_back({rows, (given.count + rows - 1) / rows});
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
        "NaN is drawn anew from the seed. The P of several matrices are summed together, with "
        "those "
        "matrices that would not become smaller, and so are their Q",
    .source = "Vogels et al. 2019",
    .bytes = "rank (rows + columns) / elements",
    .cost = "3 x rank multiplications",
    .use = "large matrices, any number of ranks",
    .read = read_matrices,
    .make = make_low_rank,
};

std::vector<LowRank::Part> LowRank::parts_of(const Params &params) {
    std::vector<Part> parts;
    uint64_t first = 0, p = 0, q = 0;
    for (const Matrix &matrix : params.matrices) {
        // Fewer than its rows and columns say, if it is padded.
        const uint64_t elements = std::min(matrix.rows * matrix.columns, params.count - first);
        const bool is_low = params.rank * (matrix.rows + matrix.columns) < elements;
        // As it is, the part has no rows: it is cut into pieces.
        const uint64_t columns = is_low ? matrix.columns : std::min(elements, plain_piece);
        parts.push_back({.first = first,
                         .end = first + elements,
                         .rows = is_low ? matrix.rows : (elements + columns - 1) / columns,
                         .columns = columns,
                         .is_low = is_low,
                         .p = p,
                         .q = q,
                         .seed = params.seed + (uint64_t(parts.size()) << 32)});
        first += elements;
        p += is_low ? matrix.rows * params.rank : elements;
        q += is_low ? matrix.columns * params.rank : 0;
    }
    return parts;
}

bool LowRank::pays(const Params &params) {
    const std::vector<Part> parts = parts_of(params);
    return std::any_of(parts.begin(), parts.end(), [](const Part &part) { return part.is_low; });
}

LowRank::LowRank(const Params &params, Group group)
    : rank_(params.rank), group_(group), parts_(parts_of(params)) {
    uint64_t p = 0, q = 0, widest = 0;
    for (const Part &part : parts_) {
        p = part.p + (part.is_low ? part.rows * rank_ : part.end - part.first);
        q = part.q + (part.is_low ? part.columns * rank_ : 0);
        if (part.is_low) widest = std::max(widest, part.columns);
    }
    p_.resize(p);
    q_.resize(q);
    next_q_.resize(q);
    row_.resize(widest);
    if (params.has_feedback()) kept_.resize(params.count);
    reset();
}

void LowRank::begin(const float *send, float *recv, bool average) {
    send_ = send;
    vector_ = kept_.empty() ? send : kept_.data();
    recv_ = recv;
    average_ = average;
    go_to(Stage::multiply);
}

void LowRank::reset() {
    std::fill(kept_.begin(), kept_.end(), 0.0f);
    for (const Part &part : parts_)
        if (part.is_low) fill_random(column(q_, part, 0), part.columns * rank_, mix64(part.seed));
}

double LowRank::kept_square() const { return square_sum(kept_.data(), kept_.size()); }

template <class F> bool LowRank::some_rows(F f) {
    uint64_t elements = 0;
    for (; part_ < parts_.size(); part_++, at_ = 0) {
        const Part &part = parts_[part_];
        for (; at_ < part.rows; at_++) {
            if (elements > 0 && elements + part.columns > elements_per_step) return false;
            const uint64_t first = std::min(part.end, part.first + at_ * part.columns);
            f(part, Row{at_, first, std::min(part.columns, part.end - first)});
            elements += part.columns;
        }
    }
    return true;
}

template <class F> bool LowRank::next_part(F f) {
    while (part_ < parts_.size() && !parts_[part_].is_low) part_++;
    if (part_ < parts_.size()) f(parts_[part_++]);
    return part_ == parts_.size();
}

void LowRank::go_to(Stage stage) {
    stage_ = stage;
    part_ = at_ = 0;
}

Action LowRank::sum(std::vector<float> &factors, Stage then) {
    go_to(then);
    return {.kind = Action::Kind::call,
            .call = {.kind = collectives::Kind::allreduce,
                     .send = factors.data(),
                     .recv = factors.data(),
                     .count = factors.size(),
                     .dtype = DTRAIN_F32,
                     .op = DTRAIN_SUM}};
}

Action LowRank::next() {
    switch (stage_) {
    case Stage::multiply:
        if (some_rows([&](const Part &part, const Row &row) { multiply_row(part, row); }))
            return sum(p_, Stage::orthonormalize);
        return {};
    case Stage::orthonormalize:
        if (next_part([&](const Part &part) {
                orthonormalize({&in_p(part, 0, 0), part.rows * rank_}, part.rows);
            })) {
            std::fill(next_q_.begin(), next_q_.end(), 0.0f);
            go_to(Stage::transpose);
        }
        return {};
    case Stage::transpose:
        if (!some_rows([&](const Part &part, const Row &row) { transpose_row(part, row); }))
            return {};
        q_.swap(next_q_);
        return sum(q_, Stage::expand);
    case Stage::expand:
        if (some_rows([&](const Part &part, const Row &row) { expand_row(part, row); }))
            go_to(Stage::renew);
        return {};
    case Stage::renew:
        if (next_part([&](const Part &part) { renew_start(part); })) go_to(Stage::done);
        return {};
    case Stage::done: break;
    }
    return {.kind = Action::Kind::done};
}

void LowRank::multiply_row(const Part &part, const Row &row) {
    if (!part.is_low) {
        std::copy_n(send_ + row.first, row.count, p_.data() + part.p + (row.first - part.first));
        return;
    }
    if (!kept_.empty()) accumulate(kept_.data() + row.first, send_ + row.first, row.count);
    for (uint32_t k = 0; k < rank_; k++)
        in_p(part, k, row.index) = dot(vector_ + row.first, column(q_, part, k), row.count);
}

void LowRank::transpose_row(const Part &part, const Row &row) {
    if (!part.is_low) return;
    for (uint32_t k = 0; k < rank_; k++)
        add_multiple(column(next_q_, part, k), in_p(part, k, row.index), vector_ + row.first,
                     row.count);
}

// Computes a row of P Q^T, the approximate sum. Every rank keeps its own vector's difference from
// the mean.
void LowRank::expand_row(const Part &part, const Row &row) {
    if (!part.is_low) return give(row, p_.data() + part.p + (row.first - part.first));
    std::fill_n(row_.data(), row.count, 0.0f);
    for (uint32_t k = 0; k < rank_; k++)
        add_multiple(row_.data(), in_p(part, k, row.index), column(q_, part, k), row.count);
    give(row, row_.data());
    if (!kept_.empty()) keep_rest(kept_.data() + row.first, row_.data(), row.count);
}

void LowRank::give(const Row &row, float *sum) {
    if (!average_) std::copy_n(sum, row.count, recv_ + row.first);
    device::scale(sum, row.count, DTRAIN_F32, uint32_t(group_.size));
    if (average_) std::copy_n(sum, row.count, recv_ + row.first);
}

// Replaces columns that are zero or not finite, which would stay so in all later runs.
void LowRank::renew_start(const Part &part) {
    for (uint32_t k = 0; k < rank_; k++) {
        const double square = square_sum(column(q_, part, k), part.columns);
        if (!(square > 0 && square < 1e300))
            fill_random(column(q_, part, k), part.columns, mix64(part.seed + k + 1));
    }
}

} // namespace dtrain::compression
