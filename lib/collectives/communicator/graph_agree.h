// All ranks of a communicator make one graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/communicator/communicator.h"
#include "collectives/graph/graph.h"
#include "dtrain.h"

namespace dtrain::collectives {

// Collective, blocking: every rank comes to the same verdict, and a graph that is refused leaves
// the communicator as it was. params: checked here; the arrays are not needed afterwards.
// ERR_INVALID or ERR_LIMIT as said in graph.h; ERR_MISMATCH: the ranks want different graphs, or a
// rank's out_neighbors are not those that hear of it.
Status agree_on_graph(Communicator &comm, const dtrain_graph_params_t &params,
                      std::shared_ptr<const Graph> &out);

} // namespace dtrain::collectives
