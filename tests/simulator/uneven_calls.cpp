// SPDX-License-Identifier: Apache-2.0
#include "uneven_calls.h"

#include "program_memory.h"

#include <algorithm>
#include <numeric>
#include <pthread.h>

namespace dtrain::simulator {
namespace {

bool copy(const Here &here, dtrain_comm_t **out) {
    here.caller.begin();
    return here.caller.check(dtrain_comm_duplicate(here.comm, out), "duplicate",
                             2 * here.caller.plan.op_timeout);
}

// Of operations that cannot go well.
void end_badly(const Here &here, dtrain_request_t *request, const char *call) {
    if (request == nullptr) return;
    if (dtrain_request_wait(request, -1) == DTRAIN_OK)
        fail_life("process %d: %s ended well", here.caller.process, call);
    dtrain_request_free(request);
}

// What one of two threads does; a Caller is for one thread.
struct Summer {
    Summer(const Here &here, dtrain_comm_t *comm, size_t count)
        : caller(here.caller.plan, here.caller.process), own{caller, here.context, comm},
          data(count) {
        caller.members = here.caller.members;
    }
    void run() {
        for (int i = 0; i < 4 && good; i++) {
            std::iota(data.begin(), data.end(), caller.process);
            caller.begin();
            good = own.check(dtrain_allreduce(own.comm, data.data(), data.data(), data.size(),
                                              DTRAIN_I64, DTRAIN_SUM, nullptr, nullptr),
                             "allreduce of a thread");
            const std::vector<int> &all = caller.members;
            const int64_t sum = std::accumulate(all.begin(), all.end(), int64_t{0});
            for (size_t k = 0; k < data.size() && good; k++)
                if (data[k] != sum + int64_t(k * all.size()))
                    fail_life("process %d: a thread's sum is wrong", caller.process);
        }
    }

    Caller caller;
    Here own;
    Data<int64_t> data;
    bool good = true;
};

} // namespace

bool abort_a_copy(const Here &here, int who) {
    Caller &caller = here.caller;
    dtrain_comm_t *one = nullptr;
    if (!copy(here, &one)) return false;
    caller.begin();
    bool good = here.rank() != who || here.check(dtrain_comm_abort(one, "for a test"), "abort");
    const dtrain_status_t status = dtrain_barrier(one, nullptr, nullptr);
    if (status == DTRAIN_OK)
        fail_life("process %d: a barrier ended well on a communicator that rank %d has aborted",
                  caller.process, who);
    if (status != DTRAIN_ERR_ABORTED) good = here.check(status, "barrier of a copy") && good;
    dtrain_comm_destroy(one);
    return good;
}

bool abandon_a_copy(const Here &here, int who) {
    constexpr uint32_t tag = 78; // of no message
    constexpr size_t count = 3000;
    Caller &caller = here.caller;
    if (caller.members.size() < 2) return true;
    dtrain_comm_t *one = nullptr;
    if (!copy(here, &one)) return false;
    Data<double> values(count, 1);
    int64_t message = 0;
    dtrain_request_t *sum = nullptr, *receive = nullptr;
    caller.begin();
    bool good = here.check(
        dtrain_recv(one, &message, 1, DTRAIN_I64, DTRAIN_ANY_RANK, tag, nullptr, &receive),
        "posting a receive of nothing");
    // The first may have gone by the time that the others begin.
    if (good && here.rank() != who) {
        const dtrain_status_t status = dtrain_allreduce(one, values.data(), values.data(), count,
                                                        DTRAIN_F64, DTRAIN_SUM, nullptr, &sum);
        good = status == DTRAIN_ERR_PEER || status == DTRAIN_ERR_ABORTED ||
               here.check(status, "posting a sum of most");
    }
    caller.begin();
    good = here.caller.check(dtrain_comm_destroy(one), "destroying a copy", 0) && good;
    end_badly(here, sum, "a sum of most");
    end_badly(here, receive, "a receive of nothing");
    return good;
}

bool come_late(const Here &here, size_t count, int who, int64_t timeout_ns) {
    constexpr int64_t told_within = 2'100 * ms; // calls are compared every second
    Caller &caller = here.caller;
    const int64_t late = std::min(3 * second, caller.plan.op_timeout / 2);
    dtrain_comm_t *one = nullptr;
    if (!copy(here, &one)) return false;
    for (int i = 0; i < 600 && here.rank() == who; i++) {
        sleep_until(world->clock + late / 600);
        if (caller.plan.manual) dtrain_context_progress(here.context); // else it is silent
    }
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = timeout_ns;
    Data<int64_t> data(count, caller.process);
    caller.begin();
    const dtrain_status_t status = dtrain_allreduce(one, data.data(), data.data(), count,
                                                    DTRAIN_I64, DTRAIN_SUM, &params, nullptr);
    // Whoever is in time waits for the late one alone, perhaps by way of others.
    if (status == DTRAIN_ERR_TIMEOUT && timeout_ns >= told_within && !caller.plan.may_fail() &&
        here.rank() != who && !names_rank(last_error(), who))
        fail_life("process %d: rank %d is late, and not named: %s", caller.process, who,
                  last_error().c_str());
    const int64_t sum = std::accumulate(caller.members.begin(), caller.members.end(), int64_t{0});
    for (size_t i = 0; i < count && status == DTRAIN_OK; i++)
        if (data[i] != sum) fail_life("process %d: a late sum is wrong", caller.process);
    // Where one was out of time, the others are told.
    bool good = true;
    if (status != DTRAIN_ERR_TIMEOUT && status != DTRAIN_ERR_PEER && status != DTRAIN_ERR_ABORTED)
        good = here.caller.check(status, "late allreduce", timeout_ns);
    dtrain_comm_destroy(one);
    return good;
}

bool sum_in_two_threads(const Here &here, size_t count) {
    dtrain_comm_t *one = nullptr;
    if (!copy(here, &one)) return false;
    Summer other(here, one, count / 2 + 1), main(here, here.comm, count);
    pthread_t thread{};
    const auto run = [](void *summer) -> void * {
        static_cast<Summer *>(summer)->run();
        return nullptr;
    };
    const bool both = pthread_create(&thread, nullptr, run, &other) == 0;
    main.run();
    if (both)
        pthread_join(thread, nullptr);
    else // for want of memory
        other.run();
    dtrain_comm_destroy(one);
    return main.good && other.good;
}

} // namespace dtrain::simulator
