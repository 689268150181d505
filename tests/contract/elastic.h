// Elastic jobs of forked processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/processes.h"

namespace elastic {

using processes::Job;

inline const ranks::Options elastic_shm = {{"elastic", "yes"}, {"op.timeout", "20s"}},
                            elastic_tcp = {{"elastic", "yes"},
                                           {"op.timeout", "20s"},
                                           {"transports", "tcp"}},
                            elastic_manual = {
                                {"elastic", "yes"}, {"op.timeout", "20s"}, {"progress", "manual"}};
constexpr int newcomer = -1;

inline dtrain_comm_t *join_as(dtrain_context_t *context, const char *rendezvous, int rank,
                              int size) {
    dtrain_comm_params_t params;
    DTRAIN_INIT(&params);
    params.size = rank == newcomer ? DTRAIN_NEWCOMER : size;
    params.rank = rank;
    dtrain_comm_t *comm = nullptr;
    OK(dtrain_comm_create(context, rendezvous, &params, &comm));
    return comm;
}

inline dtrain_reform_params_t sizes(int32_t smallest, int32_t largest = 0, int32_t leaves = 0) {
    dtrain_reform_params_t params;
    DTRAIN_INIT(&params);
    params.min_size = smallest;
    params.max_size = largest;
    params.leaves = leaves;
    return params;
}

// Replaces *comm by the next generation's communicator; NULL for one that leaves.
inline void reform(dtrain_comm_t **comm, const dtrain_reform_params_t &params) {
    dtrain_comm_t *next = nullptr;
    OK(dtrain_comm_reform(*comm, &params, &next));
    OK(dtrain_comm_destroy(*comm));
    *comm = next;
}

// The sum of all ranks is right, for small and large vectors.
inline void check_sum(dtrain_comm_t *comm, int size) {
    REQUIRE(dtrain_comm_size(comm) == size);
    for (size_t count : {1u, 300000u}) {
        std::vector<int64_t> data(count, dtrain_comm_rank(comm));
        OK(dtrain_allreduce(comm, data.data(), data.data(), count, DTRAIN_I64, DTRAIN_SUM, nullptr,
                            nullptr));
        for (int64_t x : data) REQUIRE(x == size * (size - 1) / 2);
    }
}

inline std::string changes(dtrain_comm_t *comm) {
    char text[4096];
    REQUIRE(dtrain_comm_changes(comm, text, sizeof text) < sizeof text);
    return text;
}

// Steps until so many processes wait; all ranks leave the loop at the same step.
inline void step_until_newcomers(dtrain_comm_t *comm, processes::Seen &seen, int32_t wanted) {
    for (int32_t least = 0; least < wanted;) {
        least = dtrain_comm_newcomers(comm);
        REQUIRE(least >= 0);
        OK(dtrain_allreduce(comm, &least, &least, 1, DTRAIN_I32, DTRAIN_MIN, nullptr, nullptr));
        seen.rounds++;
    }
}

} // namespace elastic
