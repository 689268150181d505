// Networks for the tests of prices: shared memory, a data-centre network, slow Ethernet.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "collectives/cost/price.h"

inline constexpr dtrain::collectives::NetworkModel networks[] = {
    {300, 100, 0.05, 0.05, 0.03},
    {5000, 1500, 0.25, 0.05, 0.03},
    {30000, 5000, 0.8, 0.1, 0.05},
};
inline constexpr const char *network_names[] = {"shared memory", "data centre", "ethernet"};

// The bytes that a call is about, as elements of 4 bytes; per rank for the kinds with blocks.
inline dtrain::collectives::CollectiveSpec call_of(dtrain::collectives::Kind kind, int32_t size,
                                                   uint64_t bytes) {
    using dtrain::collectives::Kind;
    dtrain::collectives::CollectiveSpec call;
    call.kind = kind;
    call.size = size;
    call.element_bytes = 4;
    call.count = bytes / 4;
    bool whole = kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::broadcast;
    if (!whole) call.count = (call.count + uint64_t(size) - 1) / uint64_t(size);
    if (kind == Kind::barrier) call.count = 0, call.element_bytes = 1;
    return call;
}
