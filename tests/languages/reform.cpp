// A C++ worker of an elastic job; test_reform.py says what happens to it.
// SPDX-License-Identifier: Apache-2.0
#include <dtrain.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

using namespace std::chrono_literals;
using dtrain::Communicator;
using dtrain::Op;
using dtrain::ReformParams;

namespace {

void add_up(const Communicator &world) {
    int64_t sum[1] = {world.rank()};
    world.allreduce(sum);
    std::cout << "sum " << sum[0] << " of " << world.size() << std::endl;
}

std::optional<Communicator> reform(const Communicator &world, const ReformParams &params) {
    std::optional<Communicator> made = world.reform(params);
    if (made) std::cout << "changes " << made->changes() << std::endl;
    return made;
}

} // namespace

int main() {
    const dtrain::Context context;
    std::optional<Communicator> world = context.join();
    if (std::getenv("DTRAIN_RANK") != std::string("new")) {
        try {
            (void)world->reform(ReformParams().min_size(9).timeout(1s));
        } catch (const dtrain::TimeoutError &error) {
            std::cout << "too few: " << error.what() << std::endl;
        }
        int32_t there[1] = {0};
        while (there[0] == 0) {
            there[0] = world->newcomers();
            world->allreduce(there, Op::MIN);
        }
        world = reform(*world, ReformParams().min_size(3));
    }
    add_up(*world);
    try {
        for (;;) world->barrier();
    } catch (const dtrain::PeerError &) {
        world = reform(*world, ReformParams().min_size(2));
    }
    add_up(*world);
    ReformParams last;
    if (world->rank() == 1) last.leave();
    world = reform(*world, last);
    std::cout << (world ? "alone" : "left") << std::endl;
}
