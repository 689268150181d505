// SPDX-License-Identifier: Apache-2.0
#include "more_calls.h"

#include "program_memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dtrain::simulator {

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

bool abort_a_copy(const Here &here, int who) {
    Caller &caller = here.caller;
    dtrain_comm_t *copy = nullptr;
    caller.begin();
    if (!caller.check(dtrain_comm_duplicate(here.comm, &copy), "duplicate",
                      2 * caller.plan.op_timeout))
        return false;
    caller.begin();
    bool good = here.rank() != who || here.check(dtrain_comm_abort(copy, "for a test"), "abort");
    const dtrain_status_t status = dtrain_barrier(copy, nullptr, nullptr);
    if (status == DTRAIN_OK)
        fail_life("process %d: a barrier ended well on a communicator that rank %d has aborted",
                  caller.process, who);
    if (status != DTRAIN_ERR_ABORTED) good = here.check(status, "barrier of a copy") && good;
    dtrain_comm_destroy(copy);
    return good;
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
    const int64_t sum = std::accumulate(caller.members.begin(), caller.members.end(), int64_t{0});
    for (size_t i = 0; i < count && good; i++)
        if (data[i] != sum + int64_t(i) * size)
            fail_life("process %d: element %zu of registered memory is wrong", caller.process, i);
    caller.begin();
    return here.check(dtrain_mem_deregister(memory), "deregister") && good;
}

} // namespace dtrain::simulator
