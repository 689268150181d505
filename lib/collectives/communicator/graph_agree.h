// Makes one graph on all ranks of a communicator.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "collectives/graph/graph.h"
#include "dtrain.h"

namespace dtrain::collectives {

// Collective, blocking: every rank reaches the same verdict, and a refused graph leaves the
// communicator as it was. params: checked here; their arrays are not needed afterwards. ERR_INVALID
// or ERR_LIMIT as in graph.h; ERR_MISMATCH: the ranks want different graphs, or a rank's
// out_neighbors are not the ranks that receive from it.
Status agree_on_graph(Communicator &comm, const dtrain_graph_params_t &params,
                      std::shared_ptr<const Graph> &out);

} // namespace dtrain::collectives
