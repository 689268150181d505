// The methods of compression for all ranks at once, as plainly as possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "compression/elements.h"
#include "compression/matrix.h"
#include "compression/params.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace naive {

using Vector = std::vector<float>;
using dtrain::compression::Params;

// A method written out, in models/<name>.cpp; independent of the library's.
struct Model {
    uint32_t kind = 0;
    // Methods by blocks: what encoding and decoding makes of a block.
    void (*block)(float *x, size_t n) = nullptr;
    // Others: what a rank sends of its vector; the results are added up. PowerSGD is below.
    Vector (*sent)(const Params &params, const Vector &x) = nullptr;
    double tolerance = 0;
};

inline std::map<uint32_t, Model> &models() {
    static std::map<uint32_t, Model> all;
    return all;
}

// One for each models/<name>.cpp.
struct AddModel {
    explicit AddModel(const Model &model) { models()[model.kind] = model; }
};

inline float largest(const float *x, size_t n) {
    float most = 0;
    for (size_t i = 0; i < n; i++) most = std::fmax(most, std::fabs(x[i]));
    return most;
}

// What the wire makes of a vector.
inline Vector encode(const Params &params, Vector x) {
    for (size_t at = 0; at < x.size(); at += params.block)
        models()[params.kind].block(x.data() + at, std::min<size_t>(params.block, x.size() - at));
    return x;
}

// All ranks of a compressor.
class Job {
  public:
    Job(const Params &params, size_t ranks)
        : params_(params), model_(models()[params.kind]), kept_(ranks, Vector(params.count)),
          kept_sum_(params.count),
          q_(params.matrices.empty() ? 0 : params.matrices[0].columns * params.rank) {
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
            Vector sent = model_.sent ? model_.sent(params_, y[r]) : encode(params_, y[r]);
            for (size_t i = 0; i < sum.size(); i++) {
                sum[i] += sent[i];
                if (params_.has_feedback()) kept_[r][i] = y[r][i] - sent[i];
            }
        }
        for (float &s : sum)
            if (average) s /= float(y.size());
        if (model_.sent) return sum;
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
        const size_t n = params_.matrices[0].rows, m = params_.matrices[0].columns;
        const size_t rank = params_.rank, ranks = y.size();
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
    const Model model_;
    std::vector<Vector> kept_;
    Vector kept_sum_, q_;
};

} // namespace naive
