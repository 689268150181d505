// SPDX-License-Identifier: Apache-2.0
#include "basic_calls.h"

#include "program_memory.h"

#include <algorithm>
#include <numeric>

namespace dtrain::simulator {
namespace {

// A queue looks so long whether anything moves, once a tensor is out of time.
constexpr int64_t stuck = 6 * second;

int size_of(const Here &here) { return int(here.caller.members.size()); }

template <class Value>
void expect(const Here &here, Value got, Value wanted, const char *call, size_t at) {
    if (got != wanted)
        fail_life("process %d: %s: element %zu is wrong", here.caller.process, call, at);
}

Data<int64_t> numbers(const Here &here, size_t count) {
    Data<int64_t> out(count);
    std::iota(out.begin(), out.end(), here.caller.process);
    return out;
}

void expect_sums(const Here &here, const Data<int64_t> &data, const char *call) {
    const auto &members = here.caller.members;
    const int64_t sum = std::accumulate(members.begin(), members.end(), int64_t{0});
    for (size_t i = 0; i < data.size(); i++)
        expect(here, data[i], sum + int64_t(i) * size_of(here), call, i);
}

} // namespace

bool sum(const Here &here, size_t count) {
    Data<int64_t> data = numbers(here, count);
    here.caller.begin();
    if (!here.check(dtrain_allreduce(here.comm, data.data(), data.data(), count, DTRAIN_I64,
                                     DTRAIN_SUM, nullptr, nullptr),
                    "allreduce"))
        return false;
    expect_sums(here, data, "allreduce");
    return true;
}

// Waited for in another order on each rank.
bool sum_several(const Here &here, size_t count) {
    constexpr size_t most = 4;
    Data<int64_t> data[most];
    dtrain_request_t *requests[most] = {};
    bool good = true;
    here.caller.begin();
    for (size_t i = 0; i < most && good; i++) {
        data[i] = numbers(here, count / (i + 1) + 1);
        good =
            here.check(dtrain_allreduce(here.comm, data[i].data(), data[i].data(), data[i].size(),
                                        DTRAIN_I64, DTRAIN_SUM, nullptr, &requests[i]),
                       "posting allreduce");
    }
    for (size_t i = 0; i < most; i++) {
        dtrain_request_t *request = requests[(i + size_t(here.caller.process)) % most];
        if (request == nullptr) continue;
        good = here.check(dtrain_request_wait(request, -1), "allreduce in flight") && good;
        dtrain_request_free(request);
    }
    if (good)
        for (const auto &one : data) expect_sums(here, one, "allreduce in flight");
    return good;
}

bool broadcast(const Here &here, size_t count, int root) {
    Data<int32_t> data(count, here.rank() == root ? root + 17 : -1);
    here.caller.begin();
    if (!here.check(
            dtrain_broadcast(here.comm, data.data(), count, DTRAIN_I32, root, nullptr, nullptr),
            "broadcast"))
        return false;
    for (size_t i = 0; i < count; i++) expect(here, data[i], root + 17, "broadcast", i);
    return true;
}

bool gather_all(const Here &here, size_t count) {
    count = count / 8 + 1;
    const auto &members = here.caller.members;
    Data<int32_t> own(count, here.caller.process), all(count * members.size(), -1);
    here.caller.begin();
    if (!here.check(dtrain_allgather(here.comm, own.data(), all.data(), count, DTRAIN_I32, nullptr,
                                     nullptr),
                    "allgather"))
        return false;
    for (size_t i = 0; i < all.size(); i++)
        expect(here, all[i], members[i / count], "allgather", i);
    return true;
}

bool exchange_all(const Here &here, size_t count) {
    count = count / 8 + 1;
    const auto &members = here.caller.members;
    Data<int32_t> in(count * members.size()), out(in.size(), -1);
    for (size_t i = 0; i < in.size(); i++) in[i] = here.caller.process * 100 + int32_t(i / count);
    here.caller.begin();
    if (!here.check(
            dtrain_alltoall(here.comm, in.data(), out.data(), count, DTRAIN_I32, nullptr, nullptr),
            "alltoall"))
        return false;
    for (size_t i = 0; i < out.size(); i++)
        expect(here, out[i], members[i / count] * 100 + here.rank(), "alltoall", i);
    return true;
}

// Blocks of a sum, which one rank then collects, and others that it hands out.
bool move_blocks(const Here &here, size_t count, int root) {
    count = count / 8 + 1;
    const auto &members = here.caller.members;
    const auto size = int64_t(members.size());
    Data<int64_t> in(count * members.size()), out(count, -1);
    for (size_t i = 0; i < in.size(); i++) in[i] = here.caller.process + int64_t(i / count);
    here.caller.begin();
    if (!here.check(dtrain_reduce_scatter(here.comm, in.data(), out.data(), count, DTRAIN_I64,
                                          DTRAIN_SUM, nullptr, nullptr),
                    "reduce_scatter"))
        return false;
    const int64_t sum = std::accumulate(members.begin(), members.end(), int64_t{0});
    for (size_t i = 0; i < count; i++)
        expect(here, out[i], sum + here.rank() * size, "reduce_scatter", i);
    const bool collects = here.rank() == root;
    Data<int64_t> all(collects ? in.size() : 0, -1);
    here.caller.begin();
    if (!here.check(dtrain_gather(here.comm, out.data(), collects ? all.data() : nullptr, count,
                                  DTRAIN_I64, root, nullptr, nullptr),
                    "gather"))
        return false;
    for (size_t i = 0; i < all.size(); i++)
        expect(here, all[i], sum + int64_t(i / count) * size, "gather", i);
    std::ranges::fill(out, -1);
    here.caller.begin();
    if (!here.check(dtrain_scatter(here.comm, collects ? in.data() : nullptr, out.data(), count,
                                   DTRAIN_I64, root, nullptr, nullptr),
                    "scatter"))
        return false;
    for (size_t i = 0; i < count; i++)
        expect(here, out[i], int64_t{members[size_t(root)]} + here.rank(), "scatter", i);
    return true;
}

// To the next rank, from the one before, both at once.
bool pass_on(const Here &here, size_t count) {
    const int size = size_of(here);
    const int next = (here.rank() + 1) % size, before = (here.rank() + size - 1) % size;
    Data<int32_t> in(count, -1), out(count, here.caller.process);
    dtrain_request_t *request = nullptr;
    here.caller.begin();
    if (!here.check(
            dtrain_recv(here.comm, in.data(), count, DTRAIN_I32, before, 1, nullptr, &request),
            "recv"))
        return false;
    bool good = here.check(
        dtrain_send(here.comm, out.data(), count, DTRAIN_I32, next, 1, nullptr, nullptr), "send");
    here.caller.begin();
    good = here.check(dtrain_request_wait(request, -1), "wait of recv") && good;
    dtrain_request_free(request);
    for (size_t i = 0; i < count && good; i++)
        expect(here, in[i], here.caller.members[size_t(before)], "recv", i);
    return good;
}

// Each rank submits them in another order.
bool sum_gradients(const Here &here, size_t count) {
    constexpr size_t most = 5;
    static constexpr const char *names[most] = {"a", "b", "c", "d", "e"};
    Caller &caller = here.caller;
    dtrain_gradients_t *queue = nullptr;
    caller.begin();
    if (!caller.check(dtrain_gradients_create(here.comm, nullptr, &queue), "creating a queue",
                      2 * caller.plan.op_timeout))
        return false;
    Data<int64_t> data[most];
    dtrain_request_t *requests[most] = {};
    bool good = true;
    caller.begin();
    for (size_t i = 0; i < most && good; i++) {
        const size_t k = (i + size_t(caller.process)) % most;
        data[k] = numbers(here, count / (k + 1) + 1);
        good = here.check(dtrain_gradients_submit(queue, names[k], data[k].data(), data[k].data(),
                                                  data[k].size(), DTRAIN_I64, DTRAIN_SUM, nullptr,
                                                  &requests[k]),
                          "submit");
    }
    for (dtrain_request_t *request : requests) {
        if (request == nullptr) continue;
        good = caller.check(dtrain_request_wait(request, -1), "gradient",
                            caller.plan.op_timeout + stuck) &&
               good;
        dtrain_request_free(request);
    }
    dtrain_gradients_destroy(queue);
    if (good)
        for (const auto &one : data) expect_sums(here, one, "gradient");
    return good;
}

bool sum_in_halves(const Here &here, size_t count) {
    Caller &caller = here.caller;
    dtrain_comm_t *half = nullptr;
    caller.begin();
    if (!caller.check(dtrain_comm_split(here.comm, here.rank() % 2, 0, &half), "split",
                      2 * caller.plan.op_timeout))
        return false;
    std::vector<int> those;
    for (size_t i = size_t(here.rank()) % 2; i < caller.members.size(); i += 2)
        those.push_back(caller.members[i]);
    those.swap(caller.members);
    const bool good = sum({caller, here.context, half}, count);
    dtrain_comm_destroy(half);
    those.swap(caller.members);
    return good;
}

} // namespace dtrain::simulator
