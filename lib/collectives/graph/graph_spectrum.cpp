// Computes how fast a graph mixes: its second eigenvalue.
// SPDX-License-Identifier: Apache-2.0
#include "collectives/graph/graph.h"

#include <algorithm>
#include <cmath>

namespace dtrain::collectives {
namespace {

constexpr int squarings = 30; // of B: the error of the 2^30-th root is then below 1e-8

class Matrix {
  public:
    explicit Matrix(size_t size) : n_(size), cells_(size * size) {}
    size_t size() const { return n_; }
    double *row(size_t i) { return cells_.data() + i * n_; }

    Matrix squared() {
        Matrix out(n_);
        for (size_t i = 0; i < n_; i++)
            for (size_t k = 0; k < n_; k++)
                for (size_t j = 0; j < n_; j++) out.row(i)[j] += row(i)[k] * row(k)[j];
        return out;
    }
    // Divides by the largest element and returns it; 0 if all elements are 0.
    double normalize() {
        double most = 0;
        for (double x : cells_) most = std::max(most, std::fabs(x));
        if (most > 0)
            for (double &x : cells_) x /= most;
        return most;
    }

  private:
    size_t n_;
    std::vector<double> cells_;
};

// W minus the matrix of the common average: it has the same eigenvalues, with 0 in place of one 1.
// (The rows of W sum to one, so Brauer's theorem applies.)
Matrix deflated(const Graph &graph) {
    Matrix b{size_t(graph.size())};
    for (size_t i = 0; i < b.size(); i++) {
        std::fill_n(b.row(i), b.size(), -1.0 / double(b.size()));
        for (const Edge &edge : graph.row(int32_t(i))) b.row(i)[edge.from] += edge.weight;
    }
    return b;
}

} // namespace

// Uses Gelfand's formula: the modulus is the limit of |B^m|^(1/m), regardless of the multiplicity
// and the angle of the largest eigenvalues; each squaring doubles m.
Status second_eigenvalue(const Graph &graph, double &modulus) {
    if (graph.size() > max_spectrum_ranks)
        return fail(
            DTRAIN_ERR_LIMIT,
            "the spectral gap cannot be computed for a graph of %d ranks; the maximum is %d",
            graph.size(), max_spectrum_ranks);
    Matrix b = deflated(graph);
    double scale = b.normalize(), log_norm = std::log(scale), exponent = 1;
    for (int i = 0; i < squarings && scale > 0; i++) {
        b = b.squared();
        exponent *= 2;
        scale = b.normalize();
        log_norm += std::log(scale) / exponent;
    }
    modulus = scale > 0 ? std::exp(log_norm) : 0;
    return DTRAIN_OK;
}

} // namespace dtrain::collectives
