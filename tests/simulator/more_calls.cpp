// SPDX-License-Identifier: Apache-2.0
#include "more_calls.h"

#include "program_memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dtrain::simulator {

namespace {

int64_t sum_of(const std::vector<int> &members) {
    return std::accumulate(members.begin(), members.end(), int64_t{0});
}

template <class Value>
void expect(const Here &here, Value got, Value wanted, const char *call, size_t at) {
    if (got != wanted)
        fail_life("process %d: %s: element %zu is wrong", here.caller.process, call, at);
}

std::vector<int32_t> ranks_of(const Here &here, uint64_t chosen) {
    std::vector<int32_t> ranks;
    for (int32_t i = 0; i < int32_t(here.caller.members.size()); i++)
        if (chosen >> i & 1) ranks.push_back(i);
    return ranks;
}

// Destroys that communicator, whose errors name its ranks.
bool sum_of_some(const Here &here, dtrain_comm_t *some, const std::vector<int32_t> &ranks,
                 size_t count) {
    Caller &caller = here.caller;
    std::vector<int> those;
    for (const int32_t rank : ranks) those.push_back(caller.members[size_t(rank)]);
    those.swap(caller.members);
    Data<int64_t> data(count, caller.process);
    caller.begin();
    const bool good = here.check(dtrain_allreduce(some, data.data(), data.data(), count, DTRAIN_I64,
                                                  DTRAIN_SUM, nullptr, nullptr),
                                 "allreduce of some");
    for (size_t i = 0; i < count && good; i++)
        expect(here, data[i], sum_of(caller.members), "allreduce of some", i);
    dtrain_comm_destroy(some);
    those.swap(caller.members);
    return good;
}

} // namespace

// The mean of all ranks' values stays what it was.
bool average_with_neighbors(const Here &here, size_t count) {
    Caller &caller = here.caller;
    if (caller.members.size() < 2) return true;
    dtrain_graph_params_t params;
    DTRAIN_INIT(&params);
    params.kind = DTRAIN_GRAPH_RING;
    dtrain_graph_t *graph = nullptr;
    caller.begin();
    if (!caller.check(dtrain_graph_create(here.comm, &params, &graph), "making a graph",
                      2 * caller.plan.op_timeout))
        return false;
    Data<double> data(count, caller.process);
    caller.begin();
    const bool good = here.check(dtrain_neighbor_average(graph, data.data(), data.data(), count,
                                                         DTRAIN_F64, nullptr, nullptr),
                                 "average");
    dtrain_graph_destroy(graph);
    if (!good) return false;
    caller.begin();
    if (!here.check(dtrain_allreduce(here.comm, data.data(), data.data(), count, DTRAIN_F64,
                                     DTRAIN_SUM, nullptr, nullptr),
                    "allreduce of averages"))
        return false;
    const double sum = std::accumulate(caller.members.begin(), caller.members.end(), 0.0);
    for (const double value : data)
        if (std::abs(value - sum) > 1e-9)
            fail_life("process %d: averages sum up to %g, not %g", caller.process, value, sum);
    return true;
}

bool cancel_a_receive(const Here &here) {
    constexpr uint32_t tag = 77; // of no message
    Caller &caller = here.caller;
    int32_t into = -1;
    dtrain_request_t *request = nullptr;
    const auto size = int(caller.members.size());
    caller.begin();
    if (!here.check(dtrain_recv(here.comm, &into, 1, DTRAIN_I32, (here.rank() + 1) % size, tag,
                                nullptr, &request),
                    "recv of nothing"))
        return false;
    caller.begin();
    bool good = here.check(dtrain_request_cancel(request), "cancel");
    const dtrain_status_t status = dtrain_request_wait(request, -1);
    dtrain_request_free(request);
    if (status == DTRAIN_OK || into != -1)
        fail_life("process %d: a receive of nothing got %d", caller.process, into);
    if (status != DTRAIN_ERR_CANCELED) good = here.check(status, "wait of a canceled recv") && good;
    return good;
}

bool sum_in_registered_memory(const Here &here, size_t count) {
    Caller &caller = here.caller;
    dtrain_mem_t *memory = nullptr;
    caller.begin();
    if (!here.check(dtrain_mem_alloc(here.context, count * sizeof(int64_t), &memory), "memory"))
        return false;
    auto *const data = static_cast<int64_t *>(dtrain_mem_address(memory));
    std::iota(data, data + count, caller.process);
    caller.begin();
    const bool good = here.check(
        dtrain_allreduce(here.comm, data, data, count, DTRAIN_I64, DTRAIN_SUM, nullptr, nullptr),
        "allreduce of registered memory");
    const auto size = int64_t(caller.members.size());
    const int64_t sum = sum_of(caller.members);
    for (size_t i = 0; i < count && good; i++)
        if (data[i] != sum + int64_t(i) * size)
            fail_life("process %d: element %zu of registered memory is wrong", caller.process, i);
    caller.begin();
    return here.check(dtrain_mem_deregister(memory), "deregister") && good;
}

// It cannot be deregistered while an operation uses it, or can, and the operation goes on.
bool sum_in_own_memory(const Here &here, size_t count) {
    Caller &caller = here.caller;
    Data<int64_t> data(count, caller.process);
    dtrain_mem_params_t params;
    DTRAIN_INIT(&params);
    params.address = data.data();
    params.length = count * sizeof(int64_t);
    dtrain_mem_t *memory = nullptr;
    caller.begin();
    if (!here.check(dtrain_mem_register(here.context, &params, &memory), "register")) return false;
    dtrain_request_t *request = nullptr;
    bool good = here.check(dtrain_allreduce(here.comm, data.data(), data.data(), count, DTRAIN_I64,
                                            DTRAIN_SUM, nullptr, &request),
                           "posting allreduce of own memory");
    dtrain_status_t early = dtrain_mem_deregister(memory);
    if (early != DTRAIN_OK && early != DTRAIN_ERR_BUSY)
        good = here.check(early, "deregister early") && good;
    if (request != nullptr)
        good = here.check(dtrain_request_wait(request, -1), "allreduce of own memory") && good;
    dtrain_request_free(request);
    for (size_t i = 0; i < count && good; i++)
        expect(here, data[i], sum_of(caller.members), "allreduce of own memory", i);
    if (early == DTRAIN_OK) return good;
    caller.begin();
    return here.check(dtrain_mem_deregister(memory), "deregister") && good;
}

// Prepared once, and started again and again.
bool sum_again_and_again(const Here &here, size_t count) {
    Caller &caller = here.caller;
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.flags = DTRAIN_OP_PERSISTENT;
    Data<int64_t> data(count);
    dtrain_request_t *request = nullptr;
    bool good = here.check(dtrain_allreduce(here.comm, data.data(), data.data(), count, DTRAIN_I64,
                                            DTRAIN_SUM, &params, &request),
                           "preparing allreduce");
    for (int i = 0; i < 3 && good; i++) {
        std::iota(data.begin(), data.end(), caller.process);
        caller.begin();
        good = here.check(dtrain_request_start(&request, 1), "start") &&
               here.check(dtrain_request_wait(request, -1), "persistent allreduce");
        for (size_t k = 0; k < count && good; k++)
            expect(here, data[k], sum_of(caller.members) + int64_t(k * caller.members.size()),
                   "persistent allreduce", k);
    }
    dtrain_request_free(request);
    return good;
}

// Some blocks are empty. Each rank's sum goes to all, to one, back, and to the owner of a block.
bool move_unequal_blocks(const Here &here, size_t count, int root) {
    Caller &caller = here.caller;
    const size_t size = caller.members.size(), rank = size_t(here.rank());
    Data<uint64_t> counts(size), begins(size);
    for (size_t i = 0; i < size; i++)
        counts[i] = (i + size_t(root)) % 3 == 0 ? 0 : count / (8 + i) + i;
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), uint64_t{0});
    const size_t all = size_t(begins.back() + counts.back());
    Data<int64_t> in(all), own(counts[rank], -1), whole(all, -1);
    std::iota(in.begin(), in.end(), caller.process);
    if (!here.check(dtrain_reduce_scatterv(here.comm, in.data(), own.data(), counts.data(),
                                           DTRAIN_I64, DTRAIN_SUM, nullptr, nullptr),
                    "reduce_scatterv"))
        return false;
    const int64_t sum = sum_of(caller.members);
    const auto wanted = [&](size_t at) { return sum + int64_t(at * size); };
    for (size_t i = 0; i < own.size(); i++)
        expect(here, own[i], wanted(begins[rank] + i), "reduce_scatterv", i);
    caller.begin();
    if (!here.check(dtrain_allgatherv(here.comm, own.data(), whole.data(), counts.data(), nullptr,
                                      DTRAIN_I64, nullptr, nullptr),
                    "allgatherv"))
        return false;
    for (size_t i = 0; i < all; i++) expect(here, whole[i], wanted(i), "allgatherv", i);
    std::ranges::fill(whole, -1);
    const bool collects = here.rank() == root;
    caller.begin();
    if (!here.check(dtrain_gatherv(here.comm, own.data(), collects ? whole.data() : nullptr,
                                   counts.data(), begins.data(), DTRAIN_I64, root, nullptr,
                                   nullptr),
                    "gatherv"))
        return false;
    for (size_t i = 0; i < all; i++)
        expect(here, whole[i], collects ? wanted(i) : -1, "gatherv", i);
    std::ranges::fill(own, -1);
    caller.begin();
    if (!here.check(dtrain_scatterv(here.comm, collects ? whole.data() : nullptr, own.data(),
                                    counts.data(), begins.data(), DTRAIN_I64, root, nullptr,
                                    nullptr),
                    "scatterv"))
        return false;
    for (size_t i = 0; i < own.size(); i++)
        expect(here, own[i], wanted(begins[rank] + i), "scatterv", i);

    // Rank j gets counts[j] from each, and so this rank's block of `all` has counts[rank].
    Data<uint64_t> received(size, counts[rank]);
    Data<int64_t> from_all(size * counts[rank], -1);
    for (int64_t &value : in) value = caller.process;
    caller.begin();
    if (!here.check(dtrain_alltoallv(here.comm, in.data(), counts.data(), nullptr, from_all.data(),
                                     received.data(), nullptr, DTRAIN_I64, nullptr, nullptr),
                    "alltoallv"))
        return false;
    for (size_t i = 0; i < from_all.size(); i++)
        expect(here, from_all[i], int64_t{caller.members[i / counts[rank]]}, "alltoallv", i);
    std::ranges::fill(whole, -1);
    caller.begin();
    if (!here.check(dtrain_reduce(here.comm, in.data(), collects ? whole.data() : nullptr, all,
                                  DTRAIN_I64, DTRAIN_SUM, root, nullptr, nullptr),
                    "reduce"))
        return false;
    for (size_t i = 0; i < all; i++) expect(here, whole[i], collects ? sum : -1, "reduce", i);
    return true;
}

// Each method keeps what is constant, but for rounding.
bool sum_compressed(const Here &here, size_t count, uint32_t kind) {
    Caller &caller = here.caller;
    dtrain_compressor_params_t params;
    DTRAIN_INIT(&params);
    params.kind = kind;
    params.count = count;
    params.ratio = kind == DTRAIN_COMPRESS_TOPK ? 1 : 0;
    dtrain_compressor_t *compressor = nullptr;
    caller.begin();
    if (!caller.check(dtrain_compressor_create(here.comm, &params, &compressor),
                      "making a compressor", 2 * caller.plan.op_timeout))
        return false;
    const auto sum = double(sum_of(caller.members) + int64_t(caller.members.size()));
    bool good = true;
    for (int i = 0; i < 3 && good; i++) {
        Data<float> data(count, float(caller.process + 1));
        caller.begin();
        good = here.check(dtrain_compressor_allreduce(compressor, data.data(), data.data(),
                                                      DTRAIN_SUM, nullptr, nullptr),
                          "compressed allreduce");
        for (const float value : data)
            if (good && !(std::abs(double(value) - sum) < 0.02 * sum))
                fail_life("process %d: a compressed sum by method %u is %g, not %g", caller.process,
                          kind, double(value), sum);
    }
    caller.begin();
    return here.check(dtrain_compressor_destroy(compressor), "destroying a compressor") && good;
}

bool sum_in_a_subset(const Here &here, size_t count, uint64_t chosen) {
    const std::vector<int32_t> ranks = ranks_of(here, chosen);
    dtrain_comm_t *some = nullptr;
    here.caller.begin();
    if (!here.caller.check(
            dtrain_comm_subset(here.comm, ranks.data(), int32_t(ranks.size()), &some), "subset",
            2 * here.caller.plan.op_timeout))
        return false;
    if ((some != nullptr) != ((chosen >> here.rank() & 1) != 0))
        fail_life("process %d: a subset has this rank, or lacks it", here.caller.process);
    return some == nullptr || sum_of_some(here, some, ranks, count);
}

bool sum_in_a_group(const Here &here, size_t count, uint64_t chosen, int tag) {
    if ((chosen >> here.rank() & 1) == 0) return true;
    const std::vector<int32_t> ranks = ranks_of(here, chosen);
    dtrain_comm_t *some = nullptr;
    here.caller.begin();
    return here.caller.check(dtrain_comm_create_group(here.comm, ranks.data(),
                                                      int32_t(ranks.size()), tag, 0, &some),
                             "create_group", 2 * here.caller.plan.op_timeout) &&
           sum_of_some(here, some, ranks, count);
}

// A queue has one event for each operation that has begun, with the status of its request.
bool take_events(const Here &here, size_t count) {
    constexpr uint64_t most = 4;
    Caller &caller = here.caller;
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    caller.begin();
    if (!here.check(dtrain_cq_create(here.context, most, &params.cq), "making a queue of events"))
        return false;
    Data<int64_t> data[most];
    dtrain_request_t *requests[most] = {};
    uint64_t begun = 0;
    bool good = true;
    for (; begun < most && good; begun += good) {
        data[begun].assign(count / (begun + 1) + 1, caller.process);
        params.user_tag = begun;
        good = here.check(dtrain_allreduce(here.comm, data[begun].data(), data[begun].data(),
                                           data[begun].size(), DTRAIN_I64, DTRAIN_SUM, &params,
                                           &requests[begun]),
                          "posting allreduce with a queue");
    }
    uint64_t taken = 0;
    while (taken < begun) {
        dtrain_event_t events[most];
        const int32_t got = dtrain_cq_poll(params.cq, events, most, -1);
        if (got <= 0) fail_life("process %d: a queue of events gives %d", caller.process, got);
        for (int32_t i = 0; i < got; i++, taken++) {
            const dtrain_event_t &event = events[i];
            if (event.user_tag >= begun || event.request != requests[event.user_tag] ||
                event.status != dtrain_request_test(event.request))
                fail_life("process %d: a queue has a wrong event", caller.process);
            good = here.check(dtrain_request_wait(event.request, -1), "allreduce with a queue") &&
                   good;
        }
    }
    for (uint64_t i = 0; i < begun; i++) {
        dtrain_request_free(requests[i]);
        for (size_t k = 0; k < data[i].size() && good; k++)
            expect(here, data[i][k], sum_of(caller.members), "allreduce with a queue", k);
    }
    caller.begin();
    return here.check(dtrain_cq_destroy(params.cq), "destroying a queue of events") && good;
}

bool exchange_with_neighbors(const Here &here, size_t count) {
    Caller &caller = here.caller;
    count = count / 8 + 1;
    if (caller.members.size() < 2) return true;
    dtrain_graph_params_t params;
    DTRAIN_INIT(&params);
    params.kind = DTRAIN_GRAPH_RING;
    dtrain_graph_t *graph = nullptr;
    caller.begin();
    if (!caller.check(dtrain_graph_create(here.comm, &params, &graph), "making a graph",
                      2 * caller.plan.op_timeout))
        return false;
    int32_t from[2] = {}, to[2] = {};
    const auto in = size_t(dtrain_graph_neighbors(graph, DTRAIN_GRAPH_IN, from, nullptr, 2));
    const auto out = size_t(dtrain_graph_neighbors(graph, DTRAIN_GRAPH_OUT, to, nullptr, 2));
    if (in > 2 || out > 2) fail_life("process %d: a ring has more neighbors", caller.process);
    Data<int32_t> own(count, caller.process), got(in * count, -1), sent(out * count);
    caller.begin();
    bool good = here.check(dtrain_neighbor_allgather(graph, own.data(), got.data(), count,
                                                     DTRAIN_I32, nullptr, nullptr),
                           "allgather of neighbors");
    const auto member = [&](size_t i) { return caller.members[size_t(from[i / count])]; };
    for (size_t i = 0; i < got.size() && good; i++)
        expect(here, got[i], member(i), "allgather of neighbors", i);
    if (good) {
        for (size_t i = 0; i < sent.size(); i++) sent[i] = caller.process * 100 + to[i / count];
        caller.begin();
        good = here.check(dtrain_neighbor_alltoall(graph, sent.data(), got.data(), count,
                                                   DTRAIN_I32, nullptr, nullptr),
                          "alltoall of neighbors");
        for (size_t i = 0; i < got.size() && good; i++)
            expect(here, got[i], member(i) * 100 + here.rank(), "alltoall of neighbors", i);
    }
    dtrain_graph_destroy(graph);
    return good;
}

bool join_queue_early(const Here &here, size_t count, int who) {
    // A queue looks so long whether anything moves, once a tensor is out of time.
    constexpr int64_t stuck = 6 * second;
    Caller &caller = here.caller;
    dtrain_gradients_t *queue = nullptr;
    caller.begin();
    if (!caller.check(dtrain_gradients_create(here.comm, nullptr, &queue), "creating a queue",
                      2 * caller.plan.op_timeout))
        return false;
    bool good = true;
    Data<int64_t> data(count, caller.process);
    caller.begin();
    if (here.rank() != who) {
        good = caller.check(dtrain_gradients_submit(queue, "late", data.data(), data.data(), count,
                                                    DTRAIN_I64, DTRAIN_SUM, nullptr, nullptr),
                            "gradient of most", caller.plan.op_timeout + stuck);
        const int64_t sum = sum_of(caller.members) - caller.members[size_t(who)];
        for (size_t i = 0; i < count && good; i++)
            expect(here, data[i], sum, "gradient of most", i);
    }
    if (good) {
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.timeout_ns = 2 * caller.plan.op_timeout;
        int32_t last = -1;
        caller.begin();
        good = caller.check(dtrain_gradients_join(queue, &params, &last, nullptr), "joining",
                            params.timeout_ns + stuck);
        if (good && (last < 0 || last >= int32_t(caller.members.size())))
            fail_life("process %d: rank %d has joined last", caller.process, last);
    }
    dtrain_gradients_destroy(queue);
    return good;
}

} // namespace dtrain::simulator
