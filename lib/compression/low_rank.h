// PowerSGD: sends matrices of low rank instead of the vector.
// SPDX-License-Identifier: Apache-2.0
//
// The vector is one or more n x m matrices M (row by row; a single one is padded with zeros). The
// sum of all ranks' M is approximated by P Q^T with P n x r and Q m x r: P = M Q, summed over ranks
// and orthonormalized; Q = M^T P, summed over ranks. The next run starts from Q, so that runs are
// steps of one power iteration. Source: Vogels et al.: PowerSGD, NeurIPS 2019.
//
// The factors P of all matrices are summed by one all-reduce, which also carries the matrices for
// which a low rank does not pay, and the factors Q by another.
#pragma once
#include "compression/method.h"

#include <vector>

namespace dtrain::compression {

class LowRank final : public Method {
  public:
    LowRank(const Params &params, Group group);
    // Whether P and Q together are smaller than the matrix, for any of the matrices.
    static bool pays(const Params &params);
    void begin(const float *send, float *recv, bool average) override;
    Action next() override;
    void reset() override;
    uint64_t sent_bytes() const override {
        return allreduce_bytes((p_.size() + q_.size()) * sizeof(float), group_.size);
    }
    double kept_square() const override;

  private:
    enum class Stage { multiply, orthonormalize, transpose, expand, renew, done };

    struct Part {
        uint64_t first, end; // elements of the vector
        uint64_t rows, columns;
        bool is_low;   // else it lies in p_ as it is
        uint64_t p, q; // where its factors begin
        uint64_t seed;
    };
    static std::vector<Part> parts_of(const Params &params);
    struct Row {
        uint64_t index, first, count; // in its part; elements of the vector
    };

    // Calls f(part, row) for the next few rows; returns whether all rows of all parts are done.
    template <class F> bool some_rows(F f);
    // Calls f(part) for the next part that is of low rank; returns whether all are done.
    template <class F> bool next_part(F f);
    void go_to(Stage stage);
    Action sum(std::vector<float> &factors, Stage then);
    void multiply_row(const Part &part, const Row &row);
    void transpose_row(const Part &part, const Row &row);
    void expand_row(const Part &part, const Row &row);
    void renew_start(const Part &part);
    void give(const Row &row, float *sum); // the result; leaves the mean in `sum`
    float *column(std::vector<float> &q, const Part &part, uint32_t k) const {
        return q.data() + part.q + k * part.columns;
    }
    float &in_p(const Part &part, uint32_t k, uint64_t row) {
        return p_[part.p + k * part.rows + row];
    }

    const uint32_t rank_;
    const Group group_;
    const std::vector<Part> parts_;
    std::vector<float> p_, q_; // by part, column by column
    std::vector<float> kept_;
    std::vector<float> next_q_, row_;
    const float *send_ = nullptr;
    const float *vector_ = nullptr; // kept_, or the input if there is no feedback
    float *recv_ = nullptr;
    bool average_ = false;
    Stage stage_ = Stage::done;
    size_t part_ = 0; // the next one, ...
    uint64_t at_ = 0; // ... and its next row
};

} // namespace dtrain::compression
