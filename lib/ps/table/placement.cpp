// Fills in and checks the parameters of a placement.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/placement.h"

#include "ps/table/rules.h"
#include "ps/table/table_params.h"

#include <algorithm>
#include <bit>

namespace dtrain::ps {
namespace {

constexpr uint64_t usual_block = 65536;
constexpr uint32_t usual_virtual_nodes = 256;

bool in_blocks(const TableParams &params) {
    const uint32_t policy = params.placement.policy;
    return !is_sparse(params) && (policy == DTRAIN_PLACE_HASH ||
                                  policy == DTRAIN_PLACE_CONSISTENT || policy == DTRAIN_PLACE_USER);
}

bool by_keys(const TableParams &params) {
    const uint32_t policy = params.placement.policy;
    return is_sparse(params) && (policy == DTRAIN_PLACE_RANGE || policy == DTRAIN_PLACE_USER);
}

// The elements of a unit that is never cut: a row, or a block of int8.
uint64_t whole(const TableParams &params) { return std::max<uint64_t>(whole_elements(params), 1); }

bool valid_block(const TableParams &params) {
    const uint64_t block = params.placement.block;
    if (!in_blocks(params)) return block == 0;
    return block > 0 && block <= params.length &&
           (block % whole(params) == 0 || block == params.length) &&
           (params.length - 1) / block < most_blocks;
}

uint64_t block_for(const TableParams &params) {
    const uint64_t unit = whole(params);
    const uint64_t least = std::max(usual_block, params.length / most_blocks + 1);
    return std::min((least + unit - 1) / unit * unit, params.length);
}

} // namespace

Blocks key_blocks(uint64_t key_count, uint64_t most) {
    const auto bits = uint32_t(std::bit_width(key_count - 1)); // of the largest key
    const auto kept = uint32_t(std::bit_width(most - 1));
    const uint64_t size = uint64_t{1} << (bits > kept ? bits - kept : 0);
    return {(key_count - 1) / size + 1, size, key_count};
}

Blocks blocks_of(const TableParams &params) {
    const Placement &placement = params.placement;
    if (is_sparse(params)) return key_blocks(placement.key_count, most_blocks);
    return {(params.length - 1) / placement.block + 1, placement.block, params.length};
}

void resolve_placement(const dtrain_table_params_t &given, TableParams &params) {
    Placement &placement = params.placement;
    const uint32_t usual = is_sparse(params) ? DTRAIN_PLACE_HASH : DTRAIN_PLACE_RANGE;
    placement.policy = given.placement != 0 ? given.placement : usual;
    placement.virtual_nodes = given.virtual_nodes;
    placement.block = given.placement_block;
    placement.key_count = given.key_count;
    placement.split_bytes = given.split_bytes;
    if (placement.policy == DTRAIN_PLACE_CONSISTENT && placement.virtual_nodes == 0)
        placement.virtual_nodes = usual_virtual_nodes;
    if (in_blocks(params) && placement.block == 0 && params.length > 0)
        placement.block = block_for(params);
}

const char *bad_placement(const TableParams &params) {
    const Placement &placement = params.placement;
    const uint32_t policy = placement.policy;
    if (policy < DTRAIN_PLACE_RANGE || policy > DTRAIN_PLACE_USER)
        return "placement is not one of DTRAIN_PLACE_*";
    const bool ring = policy == DTRAIN_PLACE_CONSISTENT;
    if (ring ? placement.virtual_nodes < 1 || placement.virtual_nodes > most_virtual_nodes
             : placement.virtual_nodes > 0)
        return "virtual_nodes is not valid (CONSISTENT has 1 to 1024, other placements 0)";
    if (!valid_block(params))
        return "placement_block is not valid (it is for dense tables with HASH, CONSISTENT or "
               "USER; it is a number of whole rows, or of I8 without rows a multiple of 128, and "
               "gives at most 16384 blocks)";
    if (placement.key_count > 0 && !by_keys(params))
        return "key_count is not valid (it is for sparse tables with RANGE or USER)";
    if (placement.split_bytes > 0 && !on_one_server(placement))
        return "split_bytes is not valid (it is for ROUND_ROBIN and GREEDY)";
    return nullptr;
}

bool fits_servers(const TableParams &params, uint32_t all) {
    const Placement &placement = params.placement;
    if (placement.among > all) return false;
    const uint32_t servers = placement.servers_of(all);
    const auto &weights = placement.weights;
    const auto &owners = placement.owners;
    if (placement.home > (on_one_server(placement) ? servers : 0)) return false;
    if (!weights.empty() &&
        (by_user(placement) || weights.size() != servers ||
         std::all_of(weights.begin(), weights.end(), [](uint32_t w) { return w == 0; })))
        return false;
    return owners.size() == (by_user(placement) ? blocks_of(params).count : 0) &&
           std::all_of(owners.begin(), owners.end(), [&](uint32_t s) { return s < servers; });
}

} // namespace dtrain::ps
