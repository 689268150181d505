// Control messages as processes send them, with a few fields from the input.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/fuzz/fuzz.h"

#include "wire/control.h"

namespace dtrain::fuzz {

inline wire::Peer peer_of(int32_t member, int32_t workers) {
    wire::Peer peer;
    peer.role = member < workers ? 0 : 1;
    peer.index = member < workers ? member : member - workers;
    peer.host = "host";
    peer.listener = "10.0.0.1:" + std::to_string(7000 + member);
    return peer;
}

inline std::vector<int32_t> some_members(Input &in) {
    std::vector<int32_t> members;
    for (uint8_t bits = in.byte(), m = 0; m < 5; m++)
        if (bits & (1 << m)) members.push_back(m);
    if (members.empty()) members.push_back(0);
    return members;
}

inline wire::Gone some_gone(Input &in) {
    wire::Gone gone{in.byte(), in.byte() % 5, in.byte() % 2 == 1, "gone"};
    gone.silent = in.byte() % 2 == 1;
    gone.moved = in.byte() % 2 == 1;
    return gone;
}

inline wire::Message likely(uint64_t job, Input &in) {
    const uint64_t group = in.byte();
    switch (in.byte() % std::variant_size_v<wire::Message>) {
    case 0: {
        wire::Join join;
        join.workers = 3, join.servers = 1;
        const uint8_t member = in.byte();
        join.self = peer_of(member % 4, 3);
        join.newcomer = member >= 128;
        join.generation = in.byte() % 2;
        if (member >= 240) join.workers = 1 + in.byte();
        const uint8_t odd = in.byte();
        if (odd == 1) join.self.verify = 2;
        if (odd == 2) join.version_min = join.version_max = wire::control_version + 1;
        if (odd == 3) join.self.index = 9;
        return join;
    }
    case 1: return wire::Waiting{group % 2 ? "waiting" : ""};
    case 2: {
        wire::Roster roster{job, 1, uint32_t(in.byte() % 4), 4, {}};
        for (int32_t m = int32_t(roster.first); m < 4 && roster.members.size() < 1 + group % 4; m++)
            roster.members.push_back(peer_of(m, 3));
        if (group >= 200) roster.total = roster.first + 1 + in.byte();
        return roster;
    }
    case 3: return wire::Heartbeat{in.byte()};
    case 4: return wire::Leave{group % 2 == 1};
    case 5: return wire::Over{group % 2 ? DTRAIN_ERR_BUSY : DTRAIN_ERR_PEER, "over"};
    case 6: return some_gone(in);
    case 7:
        return wire::GroupFailed{group,    some_members(in),  DTRAIN_ERR_PEER,
                                 "failed", in.byte() % 5 - 1, in.byte()};
    case 8:
        return wire::Calls{group,
                           some_members(in),
                           in.byte() % 2 == 1,
                           {{1, 2, 0}, {2, in.byte(), 0}},
                           in.byte() % 2 == 1};
    case 9: return wire::CallsWanted{group};
    case 10: return wire::RankBehind{group, in.byte() % 5, in.byte()};
    case 11: return wire::Relay{in.byte() % 5, in.byte() % 5, in.byte(), in.bytes(8)};
    case 12: {
        wire::GroupRequest request;
        request.group = group;
        request.members = some_members(in);
        request.used[0] = in.byte();
        request.timeout_ns = in.byte() * ms;
        request.serial = 1 + in.byte();
        request.kind = wire::GroupKind(in.byte() % 2);
        request.held = in.byte() % 3 - 1;
        request.round = in.byte();
        return request;
    }
    case 13: {
        wire::GroupReply reply;
        reply.group = group;
        reply.members = some_members(in);
        reply.serials.assign(reply.members.size(), 1 + in.byte() % 3);
        reply.status = in.byte() % 2 ? DTRAIN_ERR_TIMEOUT : DTRAIN_OK;
        reply.again = in.byte() % 2 == 1;
        return reply;
    }
    case 14: {
        wire::Rejoin rejoin{job, in.byte(), in.byte() % 4, {}, {}, {}};
        if (group % 2) rejoin.gone.push_back(some_gone(in));
        return rejoin;
    }
    case 15: return wire::Welcome{in.byte(), {some_gone(in)}};
    case 16: return wire::Deposed{in.byte()};
    case 17:
        return wire::ReformRequest{group,          some_members(in),  in.byte(),
                                   in.byte() * ms, "10.0.0.1:1",      1 + in.byte() % 4,
                                   in.byte() % 8,  in.byte() % 2 == 1};
    case 18: {
        wire::Moved moved;
        moved.group = group;
        moved.attempt = in.byte();
        moved.workers = some_members(in);
        if (in.byte() % 2) moved.workers.push_back(wire::Moved::newcomer), moved.number = 0;
        moved.place = "10.0.0.1:1";
        moved.generation = in.byte();
        return moved;
    }
    default: return wire::Newcomers{in.byte()};
    }
}

} // namespace dtrain::fuzz
