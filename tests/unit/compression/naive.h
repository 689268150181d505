// The methods of compression for all ranks at once, as plainly as possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "compression/elements.h"
#include "compression/matrix.h"
#include "compression/params.h"
#include "unit/device/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace naive {

using Vector = std::vector<float>;
using dtrain::compression::Params;

inline void encode_block(const Params &params, float *x, size_t n) {
    float most = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        most = std::fmax(most, std::fabs(x[i]));
        sum += std::fabs(double(x[i]));
    }
    for (size_t i = 0; i < n; i++) switch (params.kind) {
        case DTRAIN_COMPRESS_F16:
            x[i] = float(reference::from_half(reference::to_half(double(x[i]), 10), 10));
            break;
        case DTRAIN_COMPRESS_BF16:
            x[i] = float(reference::from_half(reference::to_half(double(x[i]), 7), 7));
            break;
        case DTRAIN_COMPRESS_INT8:
            x[i] = most == 0 ? 0 : most / 127 * std::nearbyint(x[i] * (127 / most));
            break;
        default: x[i] = std::copysign(float(sum / double(n)), x[i]);
        }
}

// What the wire makes of a vector.
inline Vector encode(const Params &params, Vector x) {
    for (size_t at = 0; at < x.size(); at += params.block)
        encode_block(params, x.data() + at, std::min<size_t>(params.block, x.size() - at));
    return x;
}

inline Vector keep_largest(const Params &params, const Vector &x) {
    std::vector<size_t> order(x.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::fabs(x[a]) > std::fabs(x[b]); });
    Vector kept(x.size());
    for (size_t i = 0; i < params.kept; i++) kept[order[i]] = x[order[i]];
    return kept;
}

// All ranks of a compressor.
class Job {
  public:
    Job(const Params &params, size_t ranks)
        : params_(params), kept_(ranks, Vector(params.count)), kept_sum_(params.count),
          q_(params.columns * params.rank) {
        dtrain::compression::fill_random(q_.data(), q_.size(),
                                         dtrain::compression::mix64(params.seed));
    }

    Vector run(const std::vector<Vector> &inputs, bool average) {
        std::vector<Vector> y = inputs;
        for (size_t r = 0; r < y.size(); r++)
            for (size_t i = 0; i < y[r].size(); i++) y[r][i] += kept_[r][i];
        if (params_.kind == DTRAIN_COMPRESS_POWERSGD) return low_rank(y, average);
        Vector sum(params_.count);
        for (size_t r = 0; r < y.size(); r++) {
            bool sparse = params_.kind == DTRAIN_COMPRESS_TOPK;
            Vector sent = sparse ? keep_largest(params_, y[r]) : encode(params_, y[r]);
            for (size_t i = 0; i < sum.size(); i++) {
                sum[i] += sent[i];
                if (params_.has_feedback()) kept_[r][i] = y[r][i] - sent[i];
            }
        }
        for (float &s : sum)
            if (average) s /= float(y.size());
        if (params_.kind == DTRAIN_COMPRESS_TOPK) return sum;
        for (size_t i = 0; i < sum.size(); i++) sum[i] += kept_sum_[i];
        Vector result = encode(params_, sum);
        for (size_t i = 0; i < sum.size() && params_.has_feedback(); i++)
            kept_sum_[i] = sum[i] - result[i];
        return result;
    }

    // What the results so far lack.
    double missing(size_t i, bool average) const {
        double all = 0;
        for (const Vector &kept : kept_) all += double(kept[i]);
        return (average ? all / double(kept_.size()) : all) + double(kept_sum_[i]);
    }

  private:
    Vector low_rank(std::vector<Vector> &y, bool average) {
        const size_t n = params_.rows, m = params_.columns, rank = params_.rank, ranks = y.size();
        Vector p(n * rank), q(m * rank), result(params_.count);
        auto each = [&](auto f) { // of the matrix
            for (size_t i = 0; i < params_.count; i++) f(i, i / m, i % m);
        };
        Vector whole(params_.count);
        each([&](size_t i, size_t, size_t) {
            for (const Vector &x : y) whole[i] += x[i];
        });
        for (size_t k = 0; k < rank; k++)
            each([&](size_t i, size_t row, size_t column) {
                p[k * n + row] += whole[i] * q_[k * m + column];
            });
        dtrain::compression::orthonormalize(p, n);
        for (size_t k = 0; k < rank; k++)
            each([&](size_t i, size_t row, size_t column) {
                q[k * m + column] += whole[i] * p[k * n + row];
            });
        q_ = q;
        each([&](size_t i, size_t row, size_t column) {
            for (size_t k = 0; k < rank; k++) result[i] += p[k * n + row] * q[k * m + column];
            for (size_t r = 0; r < ranks && params_.has_feedback(); r++)
                kept_[r][i] = y[r][i] - result[i] / float(ranks);
            if (average) result[i] /= float(ranks);
        });
        return result;
    }

    const Params params_;
    std::vector<Vector> kept_;
    Vector kept_sum_, q_;
};

} // namespace naive
