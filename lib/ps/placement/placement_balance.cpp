// Computes server weights, and chooses servers for tables.
// SPDX-License-Identifier: Apache-2.0
#include "ps/placement/placement_balance.h"

namespace dtrain::ps {

std::vector<uint32_t> server_weights(uint32_t workers, uint32_t dedicated, uint32_t serving) {
    if (dedicated == 0 || serving == 0) return {};
    const uint32_t mine = workers > dedicated ? workers - dedicated : 0;
    const uint32_t theirs = workers + serving - 2;
    std::vector<uint32_t> weights(dedicated, theirs);
    // For a single worker, values that it holds itself need no network.
    weights.resize(dedicated + serving, theirs > 0 ? mine : 1);
    return weights;
}

uint32_t choose_server(const Placement &placement, std::span<const uint64_t> load, uint64_t bytes,
                       uint32_t &turn) {
    const auto servers = uint32_t(load.size());
    auto weight = [&](uint32_t s) { return placement.weights.empty() ? 1 : placement.weights[s]; };
    if (placement.policy == DTRAIN_PLACE_ROUND_ROBIN) {
        while (weight(turn % servers) == 0) ++turn;
        const uint32_t chosen = turn % servers;
        turn = chosen + 1;
        return chosen;
    }
    using Wide = unsigned __int128;
    auto fuller = [&](uint32_t a, uint32_t b) { // relative to their weights
        return (Wide(load[a]) + bytes) * weight(b) > (Wide(load[b]) + bytes) * weight(a);
    };
    uint32_t chosen = servers;
    for (uint32_t s = 0; s < servers; ++s)
        if (weight(s) > 0 && (chosen == servers || fuller(chosen, s))) chosen = s;
    return chosen;
}

} // namespace dtrain::ps
