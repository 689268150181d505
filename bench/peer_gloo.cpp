// Gloo in the comparison: PROGRAM ALGORITHM TRANSPORT BYTES..., one algorithm per run.
// SPDX-License-Identifier: Apache-2.0
//
// "ring" and "bcube" are gloo::allreduce(); "halving-doubling" and "ring-chunked" are its older
// classes, which are made for one buffer. Rank and size are dtrain-run's; PEER_STORE names an empty
// directory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include "harness.h"

namespace {

using Sum = void (*)(void *, const void *, const void *, size_t);

struct Peer {
    std::string algorithm;
    std::shared_ptr<gloo::rendezvous::Context> context, control; // control: barriers, the harness
    std::unique_ptr<gloo::Algorithm> prepared;                   // the classes
};

std::shared_ptr<gloo::rendezvous::Context> connect(const char *prefix, int rank, int size) {
    gloo::transport::tcp::attr where;
    where.hostname = "127.0.0.1";
    where.iface = "";
    where.ai_family = AF_INET;
    auto device = gloo::transport::tcp::CreateDevice(where);
    gloo::rendezvous::FileStore files(std::getenv("PEER_STORE"));
    gloo::rendezvous::PrefixStore store(prefix, files);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device);
    return context;
}

void sum(const std::shared_ptr<gloo::rendezvous::Context> &context, float *buffer, size_t count,
         gloo::AllreduceOptions::Algorithm algorithm) {
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(algorithm);
    options.setOutput(buffer, count);
    options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
    gloo::allreduce(options);
}

void barrier(void *self) {
    gloo::BarrierOptions options(static_cast<Peer *>(self)->control);
    gloo::barrier(options);
}

void prepare(void *self, float *buffer, size_t count) {
    auto *peer = static_cast<Peer *>(self);
    const std::vector<float *> buffers{buffer};
    barrier(self); // nobody uses the one before any more
    if (peer->algorithm == "halving-doubling")
        peer->prepared = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(
            peer->context, buffers, static_cast<int>(count));
    else if (peer->algorithm == "ring-chunked")
        peer->prepared = std::make_unique<gloo::AllreduceRingChunked<float>>(
            peer->context, buffers, static_cast<int>(count));
}

void allreduce(void *self, float *buffer, size_t count) {
    auto *peer = static_cast<Peer *>(self);
    if (peer->prepared != nullptr) return peer->prepared->run();
    sum(peer->context, buffer, count,
        peer->algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                   : gloo::AllreduceOptions::Algorithm::RING);
}

void exchange(void *self, float *values, size_t count) {
    sum(static_cast<Peer *>(self)->control, values, count, gloo::AllreduceOptions::Algorithm::RING);
}

int number(const char *variable) {
    const char *text = std::getenv(variable);
    return text != nullptr ? std::atoi(text) : 0;
}

} // namespace

int main(int argc, char **argv) {
    const int rank = number("DTRAIN_RANK"), size = number("DTRAIN_SIZE");
    if (argc < 2 || size == 0 || std::getenv("PEER_STORE") == nullptr)
        return std::fprintf(stderr, "peer_gloo: run it by bench/compare\n"), EXIT_FAILURE;
    Peer peer{argv[1], connect("data", rank, size), connect("control", rank, size), nullptr};
    const std::string name = "gloo-" + peer.algorithm;
    const contender_t contender = {name.c_str(), "Gloo",    rank,     size,   &peer,
                                   prepare,      allreduce, exchange, barrier};
    const int result = harness_run(&contender, argc - 1, argv + 1);
    peer.prepared.reset();
    return result;
}
