// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <dtrain.hpp>
#include <vector>

int main() {
    dtrain::Context context;
    dtrain::Communicator comm = context.join(); // who am I: the environment
    std::vector<float> gradient = {1, float(comm.rank())};
    comm.allreduce(gradient, dtrain::Op::AVG); // in place; throws dtrain::Error
    std::printf("rank %d of %d: %g\n", comm.rank(), comm.size(), gradient[1]);
}
