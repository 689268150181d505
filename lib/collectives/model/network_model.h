// The figures of a network by which collectives are priced and predicted.
// SPDX-License-Identifier: Apache-2.0
//
// The model is LogGP's (Alexandrov, Ionescu, Schauser, Scheiman: LogGP: incorporating long messages
// into the LogP model, SPAA 1995) plus the work per byte. Each rank has one processor, one outgoing
// and one incoming link. The processor serves overheads, sums and copies in the order in which they
// become ready. A message takes overhead + latency + bytes * ns_per_byte + overhead; messages wait
// for each other at the links; a send ends when the last byte has left. With a topology the ranks
// of a host share one outgoing and one incoming link, and have links of their own among themselves.
#pragma once

namespace dtrain::collectives {

struct NetworkModel {
    double latency_ns = 0;
    double overhead_ns = 0; // of the processor, per message, on either side
    double ns_per_byte = 0;
    double reduce_ns_per_byte = 0;
    double copy_ns_per_byte = 0;
    // Between ranks of one group of the topology's innermost level (a host).
    double host_latency_ns = 0, host_overhead_ns = 0, host_ns_per_byte = 0;
    // Overheads and times per byte are those of a rank that shares a core with this many ranks, all
    // of them working.
    double ranks_per_core = 1;
};

} // namespace dtrain::collectives
