// Builds partitions by range, hash, consistent hashing, or the user's callback.
// SPDX-License-Identifier: Apache-2.0
#include "ps/placement/placement_map.h"

#include "ps/table/rules.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr uint64_t slot_count = uint64_t{1} << KeyPartition::slot_bits;

// The unit in which a table is cut: 16 elements (a vector, and at least half a cache line for types
// of 2 bytes and more), or 1 if a server would get none otherwise; rounded up to whole rows or
// blocks.
uint64_t unit_of(uint64_t length, uint32_t servers, uint64_t whole) {
    uint64_t least = std::max<uint64_t>(whole, 1), unit = (15 + least) / least * least;
    return length / servers >= unit ? unit : least;
}

std::vector<uint16_t> shares(uint64_t slots, uint32_t servers, std::span<const uint32_t> weights) {
    std::vector<uint16_t> owners(slots);
    uint32_t server = 0;
    uint64_t slot = 0;
    for (uint64_t end : cut(slots, servers, weights)) {
        while (slot < end) owners[slot++] = uint16_t(server);
        ++server;
    }
    return owners;
}

// Consistent hashing: Karger et al., STOC 1997. Each server has points on a circle, in proportion
// to its weight. A key belongs to the next point at or after its hash, rounded down to a slot. An
// additional server takes keys from the others, and no key moves between those.
std::vector<uint16_t> ring(const Placement &placement, uint32_t servers) {
    const auto &weights = placement.weights;
    uint64_t greatest = weights.empty() ? 1 : *std::max_element(weights.begin(), weights.end());
    std::vector<std::pair<uint64_t, uint64_t>> points; // position, server
    for (uint32_t server = 0; server < servers; ++server) {
        const uint64_t weight = weights.empty() ? 1 : weights[server];
        const uint64_t nodes = (placement.virtual_nodes * weight + greatest - 1) / greatest;
        for (uint64_t node = 0; node < nodes; ++node)
            points.emplace_back(mix(mix(uint64_t{server} << 32 | node)), server);
    }
    std::sort(points.begin(), points.end());
    std::vector<uint16_t> owners(slot_count);
    auto next = points.begin();
    for (uint64_t slot = 0; slot < slot_count; ++slot) {
        const uint64_t position = slot << (64 - KeyPartition::slot_bits);
        while (next != points.end() && next->first < position) ++next;
        owners[slot] = uint16_t((next != points.end() ? *next : points.front()).second);
    }
    return owners;
}

void add_blocks(const TableParams &params, const KeyPartition *by_number, Partition &partition) {
    const Blocks blocks = blocks_of(params);
    for (uint64_t block = 0; block < blocks.count; ++block) {
        const uint32_t server =
            by_number != nullptr ? by_number->server_of(block) : params.placement.owners[block];
        partition.add(blocks.first(block) + blocks.items_of(block), server);
    }
}

KeyPartition hash_partition(const Placement &placement, uint32_t servers, uint32_t version) {
    using By = KeyPartition::By;
    if (placement.policy == DTRAIN_PLACE_CONSISTENT)
        return {servers, version, By::hash, ring(placement, servers)};
    if (placement.weights.empty()) return KeyPartition(servers, version);
    return {servers, version, By::hash, shares(slot_count, servers, placement.weights)};
}

} // namespace

std::vector<uint64_t> cut(uint64_t units, uint32_t servers, std::span<const uint32_t> weights) {
    auto weight = [&](uint32_t server) { return weights.empty() ? 1 : weights[server]; };
    uint64_t total = 0, before = 0;
    for (uint32_t server = 0; server < servers; ++server) total += weight(server);
    std::vector<uint64_t> ends;
    for (uint32_t server = 0; server < servers; ++server) {
        before += weight(server);
        ends.push_back(uint64_t(((unsigned __int128)(units)*before + total - 1) / total));
    }
    return ends;
}

Partition make_partition(const TableParams &params, uint32_t all, uint32_t version) {
    const Placement &placement = params.placement;
    const uint32_t servers = placement.servers_of(all);
    Partition partition(all, version);
    const uint64_t length = params.length;
    if (length == 0) return partition; // of a sparse table
    if (placement.home > 0) {
        partition.add(length, placement.home - 1);
    } else if (by_user(placement)) {
        add_blocks(params, nullptr, partition);
    } else if (placement.block > 0) {
        const KeyPartition by_number = hash_partition(placement, servers, version);
        add_blocks(params, &by_number, partition);
    } else {
        const uint64_t unit = unit_of(length, servers, whole_elements(params));
        uint32_t server = 0;
        for (uint64_t end : cut(chunks_of(length, unit), servers, placement.weights))
            partition.add(std::min(end * unit, length), server++);
    }
    return partition;
}

KeyPartition make_key_partition(const TableParams &params, uint32_t all, uint32_t version) {
    using By = KeyPartition::By;
    const Placement &placement = params.placement;
    const uint32_t servers = placement.servers_of(all);
    if (placement.home > 0) return {servers, version, By::key, {uint16_t(placement.home - 1)}};
    if (placement.policy == DTRAIN_PLACE_HASH || placement.policy == DTRAIN_PLACE_CONSISTENT ||
        on_one_server(placement))
        return hash_partition(placement, servers, version);
    const bool asked = by_user(placement);
    const Blocks blocks = key_blocks(placement.key_count, asked ? most_blocks : slot_count);
    return {servers, version, By::key,
            asked ? placement.owners : shares(blocks.count, servers, placement.weights),
            uint32_t(std::countr_zero(blocks.size))};
}

} // namespace dtrain::ps
