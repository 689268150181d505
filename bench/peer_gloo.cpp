// Gloo in the comparison: PROGRAM ALGORITHM TRANSPORT BYTES..., one algorithm per run.
// SPDX-License-Identifier: Apache-2.0
//
// All-reduce: "ring" and "bcube" are gloo::allreduce(); "halving-doubling" and "ring-chunked" are
// its older classes, which are made for one buffer. The other kinds have one algorithm, run as
// "ring". Rank and size are dtrain-run's; PEER_STORE names an empty directory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

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

void prepare(void *self, kind_t kind, float *send, float *recv, size_t count) {
    auto *peer = static_cast<Peer *>(self);
    const std::vector<float *> buffers{kind == ALLREDUCE ? recv : send};
    const auto length = static_cast<int>(count);
    barrier(self); // nobody uses the one before any more
    if (kind == REDUCE_SCATTER)
        peer->prepared = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
            peer->context, buffers, length,
            std::vector<int>(size_t(peer->context->size), length / peer->context->size));
    else if (peer->algorithm == "halving-doubling")
        peer->prepared =
            std::make_unique<gloo::AllreduceHalvingDoubling<float>>(peer->context, buffers, length);
    else if (peer->algorithm == "ring-chunked")
        peer->prepared =
            std::make_unique<gloo::AllreduceRingChunked<float>>(peer->context, buffers, length);
}

void send_and_return(Peer *peer, float *send, float *recv, size_t bytes) {
    const int rank = peer->context->rank;
    if (rank > 1) return;
    auto out = peer->context->createUnboundBuffer(rank == 0 ? send : recv, bytes);
    auto in = peer->context->createUnboundBuffer(recv, bytes);
    if (rank == 0) out->send(1, 0);
    if (rank == 0) out->waitSend();
    in->recv(1 - rank, 0);
    in->waitRecv();
    if (rank == 1) out->send(0, 0);
    if (rank == 1) out->waitSend();
}

void run(void *self, kind_t kind, float *send, float *recv, size_t count) {
    auto *peer = static_cast<Peer *>(self);
    const size_t block = count / size_t(peer->context->size);
    switch (kind) {
    case ALLREDUCE:
        if (peer->prepared != nullptr) return peer->prepared->run();
        return sum(peer->context, recv, count,
                   peer->algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                              : gloo::AllreduceOptions::Algorithm::RING);
    case REDUCE_SCATTER: // sums in place and leaves the result there
        peer->prepared->run();
        std::memcpy(recv, send, block * sizeof(float));
        return;
    case ALLGATHER: {
        gloo::AllgatherOptions options(peer->context);
        options.setInput(send, block);
        options.setOutput(recv, count);
        return gloo::allgather(options);
    }
    case BROADCAST: {
        gloo::BroadcastOptions options(peer->context);
        options.setOutput(recv, count);
        options.setRoot(0);
        return gloo::broadcast(options);
    }
    case REDUCE: {
        gloo::ReduceOptions options(peer->context);
        options.setInput(send, count);
        options.setOutput(recv, count);
        options.setRoot(0);
        options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
        return gloo::reduce(options);
    }
    case ALLTOALL: {
        gloo::AlltoallOptions options(peer->context);
        options.setInput(send, count);
        options.setOutput(recv, count);
        return gloo::alltoall(options);
    }
    case SENDRECV: return send_and_return(peer, send, recv, count * sizeof(float));
    default: return barrier(self);
    }
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
    const contender_t contender = {name.c_str(), "Gloo", rank,     size,   &peer,
                                   prepare,      run,    exchange, barrier};
    const int result = harness_run(&contender, argc - 1, argv + 1);
    peer.prepared.reset();
    return result;
}
