// Gradient descent on every rank's own samples, in C++: dtrain-run -n 4 allreduce
// SPDX-License-Identifier: Apache-2.0
#include <dtrain.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

// Of y = 2 x + 1: the gradient of the mean square error over this rank's samples.
std::vector<double> gradient(const std::vector<double> &w, int rank) {
    std::vector<double> g(2);
    const int samples = 8;
    for (int i = 0; i < samples; i++) {
        const double x = double(rank + 1) * (i - samples / 2) / samples;
        const double error = w[0] * x + w[1] - (2 * x + 1);
        g[0] += 2 * error * x / samples;
        g[1] += 2 * error / samples;
    }
    return g;
}

} // namespace

int main() try {
    using namespace std::chrono_literals;
    const dtrain::Context context;
    const dtrain::Communicator comm = context.join(); // who am I: the environment
    std::vector<double> w{0, 0};
    comm.broadcast(w);
    for (int step = 0; step < 600; step++) {
        std::vector<double> g = gradient(w, comm.rank());
        comm.with(dtrain::OpParams().timeout(30s)).allreduce(g, dtrain::Op::AVG);
        for (size_t i = 0; i < w.size(); i++) w[i] -= 0.3 * g[i];
    }
    std::printf("rank %d of %d: y = %.3f x + %.3f\n", comm.rank(), comm.size(), w[0], w[1]);
    return std::abs(w[0] - 2) > 0.01 || std::abs(w[1] - 1) > 0.01;
} catch (const dtrain::PeerError &error) {
    std::fprintf(stderr, "rank %d is lost: %s\n", error.rank(), error.what());
    return 2;
} catch (const dtrain::Error &error) {
    std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
    return 1;
}
