// Implements dtrain_graph_* and dtrain_neighbor_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/persistent.h"
#include "collectives/communicator/agreement.h"
#include "collectives/communicator/graph_agree.h"

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;
using dtrain::cluster::CallKind;
using dtrain::collectives::Edge;
using dtrain::collectives::Kind;

struct dtrain_graph : dtrain::api::Child {
    explicit dtrain_graph(dtrain_comm *owner) : Child(owner->context), comm(owner) {
        comm->graphs++;
    }
    ~dtrain_graph() { comm->graphs--; }
    dtrain_comm *const comm;
    int32_t number = 0; // number of this graph on its communicator
    std::shared_ptr<const dtrain::collectives::Graph> graph;
};

namespace {

Status run(dtrain_graph_t *graph, Kind kind, const void *send, void *recv, uint64_t count,
           uint32_t dtype, const dtrain_op_params_t *params, dtrain_request_t **request_p) {
    if (Status s = check_handle(graph, "graph"); s != DTRAIN_OK) return s;
    return dtrain::api::run_call(
        graph->comm,
        {.kind = kind,
         .send = send,
         .recv = recv,
         .count = count,
         .dtype = dtype,
         .root = graph->number,
         .graph = graph->graph.get()},
        [graph] { return graph->graph; }, params, request_p);
}

} // namespace

dtrain_status_t dtrain_graph_create(dtrain_comm_t *comm, const dtrain_graph_params_t *params,
                                    dtrain_graph_t **graph_p) {
    if (Status s = check_handle(comm, "comm"); s != DTRAIN_OK) return s;
    return guard_new([&]() -> Status {
        dtrain_graph_params_t given;
        const Status taken = graph_p == nullptr ? fail(DTRAIN_ERR_INVALID, "graph_p is NULL")
                                                : dtrain::api::take(given, params);
        if (taken != DTRAIN_OK) return refuse(*comm->communicator, CallKind::graph_create, taken);
        auto fresh = std::make_unique<dtrain_graph>(comm);
        fresh->number = comm->communicator->next_graph();
        if (Status s = agree_on_graph(*comm->communicator, given, fresh->graph); s != DTRAIN_OK)
            return s;
        *graph_p = fresh.release();
        return DTRAIN_OK;
    });
}

void dtrain_graph_destroy(dtrain_graph_t *graph) {
    if (graph != nullptr && graph->birth.here()) delete graph;
}

int32_t dtrain_graph_neighbors(const dtrain_graph_t *graph, uint32_t direction, int32_t *ranks,
                               double *weights, int32_t max) {
    if (Status s = check_handle(graph, "graph"); s != DTRAIN_OK) return s;
    if (direction != DTRAIN_GRAPH_IN && direction != DTRAIN_GRAPH_OUT)
        return fail(DTRAIN_ERR_INVALID,
                    "graph_neighbors: direction %u is neither DTRAIN_GRAPH_IN nor DTRAIN_GRAPH_OUT",
                    direction);
    if (max < 0)
        return fail(DTRAIN_ERR_INVALID, "graph_neighbors: max is %d; it must not be negative", max);
    int32_t rank = graph->comm->communicator->rank();
    bool in = direction == DTRAIN_GRAPH_IN;
    std::span<const Edge> edges = in ? graph->graph->into(rank) : graph->graph->out_of(rank);
    for (size_t i = 0; i < std::min(edges.size(), size_t(max)); i++) {
        if (ranks != nullptr) ranks[i] = in ? edges[i].from : edges[i].to;
        if (weights != nullptr) weights[i] = edges[i].weight;
    }
    return int32_t(edges.size());
}

dtrain_status_t dtrain_graph_self_weight(const dtrain_graph_t *graph, double *weight_p) {
    if (Status s = check_handle(graph, "graph"); s != DTRAIN_OK) return s;
    if (weight_p == nullptr) return fail(DTRAIN_ERR_INVALID, "graph_self_weight: weight_p is NULL");
    *weight_p = graph->graph->self(graph->comm->communicator->rank());
    return DTRAIN_OK;
}

dtrain_status_t dtrain_graph_spectral_gap(const dtrain_graph_t *graph, double *gap_p) {
    if (Status s = check_handle(graph, "graph"); s != DTRAIN_OK) return s;
    if (gap_p == nullptr) return fail(DTRAIN_ERR_INVALID, "graph_spectral_gap: gap_p is NULL");
    return guard([&] {
        double modulus = 0;
        Status s = second_eigenvalue(*graph->graph, modulus);
        if (s == DTRAIN_OK) *gap_p = 1 - modulus;
        return s;
    });
}

dtrain_status_t dtrain_neighbor_average(dtrain_graph_t *graph, const void *send, void *recv,
                                        uint64_t count, uint32_t dtype,
                                        const dtrain_op_params_t *params,
                                        dtrain_request_t **request_p) {
    return run(graph, Kind::neighbor_average, send, recv, count, dtype, params, request_p);
}

dtrain_status_t dtrain_neighbor_allgather(dtrain_graph_t *graph, const void *send, void *recv,
                                          uint64_t count, uint32_t dtype,
                                          const dtrain_op_params_t *params,
                                          dtrain_request_t **request_p) {
    return run(graph, Kind::neighbor_allgather, send, recv, count, dtype, params, request_p);
}

dtrain_status_t dtrain_neighbor_alltoall(dtrain_graph_t *graph, const void *send, void *recv,
                                         uint64_t count, uint32_t dtype,
                                         const dtrain_op_params_t *params,
                                         dtrain_request_t **request_p) {
    return run(graph, Kind::neighbor_alltoall, send, recv, count, dtype, params, request_p);
}
