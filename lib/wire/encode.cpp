// Converts control messages to flatbuffers.
// SPDX-License-Identifier: Apache-2.0
#include "wire/control.h"

#include "wire/control_generated.h"

namespace dtrain::wire {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
template <class T> using Offset = flatbuffers::Offset<T>;

Offset<flatbuffers::String> text(Builder &b, const std::string &s) {
    return b.CreateString(s.data(), std::min(s.size(), max_text));
}

Offset<fb::Peer> pack(Builder &b, const Peer &m) {
    std::vector<Offset<fb::Transport>> transports;
    for (const Transport &t : m.transports)
        transports.push_back(
            fb::CreateTransport(b, b.CreateString(t.name), b.CreateVector(t.bytes)));
    return fb::CreatePeer(b, m.role, m.index, m.pid, b.CreateString(m.host),
                          b.CreateString(m.listener), text(b, m.label), b.CreateVector(transports),
                          m.cpus, text(b, m.location), m.serves, m.cores, m.slot, m.verify);
}

Offset<fb::Join> pack(Builder &b, const Join &m) {
    return fb::CreateJoin(b, m.version_min, m.version_max, m.workers, m.servers, pack(b, m.self),
                          m.newcomer, m.generation);
}
Offset<fb::Waiting> pack(Builder &b, const Waiting &m) {
    return fb::CreateWaiting(b, text(b, m.text));
}
Offset<fb::Roster> pack(Builder &b, const Roster &m) {
    std::vector<Offset<fb::Peer>> members;
    for (const Peer &peer : m.members) members.push_back(pack(b, peer));
    return fb::CreateRoster(b, m.job, m.epoch, m.first, m.total, b.CreateVector(members));
}
Offset<fb::Heartbeat> pack(Builder &b, const Heartbeat &m) {
    return fb::CreateHeartbeat(b, m.epoch);
}
Offset<fb::Leave> pack(Builder &b, const Leave &m) { return fb::CreateLeave(b, m.moved); }
Offset<fb::Over> pack(Builder &b, const Over &m) {
    return fb::CreateOver(b, m.status, text(b, m.text));
}
Offset<fb::Gone> pack(Builder &b, const Gone &m) {
    return fb::CreateGone(b, m.epoch, m.member, m.left, text(b, m.text), m.silent, m.moved,
                          m.status);
}
Offset<fb::GroupFailed> pack(Builder &b, const GroupFailed &m) {
    return fb::CreateGroupFailed(b, m.group, b.CreateVector(m.members), m.status, text(b, m.text),
                                 m.guilty, m.from);
}
Offset<fb::Calls> pack(Builder &b, const Calls &m) {
    std::vector<fb::Call> calls;
    for (const CallRecord &c : m.calls)
        calls.emplace_back(c.seq, c.count, c.root, uint8_t(c.kind), c.dtype, c.op);
    return fb::CreateCalls(b, m.group, b.CreateVector(m.members), m.stalled,
                           b.CreateVectorOfStructs(calls), m.stuck);
}
Offset<fb::CallsWanted> pack(Builder &b, const CallsWanted &m) {
    return fb::CreateCallsWanted(b, m.group);
}
Offset<fb::RankBehind> pack(Builder &b, const RankBehind &m) {
    return fb::CreateRankBehind(b, m.group, m.rank, m.seq);
}
Offset<fb::Relay> pack(Builder &b, const Relay &m) {
    return fb::CreateRelay(b, m.from, m.to, m.channel, b.CreateVector(m.bytes));
}
Offset<fb::GroupRequest> pack(Builder &b, const GroupRequest &m) {
    return fb::CreateGroupRequest(b, m.group, b.CreateVector(m.members),
                                  b.CreateVector(m.used.data(), m.used.size()), m.timeout_ns,
                                  m.serial, uint8_t(m.kind), m.user_tag, m.held, m.round);
}
Offset<fb::GroupReply> pack(Builder &b, const GroupReply &m) {
    return fb::CreateGroupReply(b, m.group, m.status, text(b, m.text), b.CreateVector(m.members),
                                m.new_group, m.tag_id, m.round, b.CreateVector(m.serials), m.again,
                                m.again ? b.CreateVector(m.used.data(), m.used.size()) : 0);
}
Offset<fb::ReformRequest> pack(Builder &b, const ReformRequest &m) {
    return fb::CreateReformRequest(b, m.group, b.CreateVector(m.members), m.attempt, m.timeout_ns,
                                   b.CreateString(m.place), m.smallest, m.largest, m.leaves);
}
Offset<flatbuffers::Vector<Offset<flatbuffers::String>>>
remarks(Builder &b, const std::vector<std::string> &all) {
    std::vector<Offset<flatbuffers::String>> packed;
    for (size_t i = 0; i < std::min(all.size(), max_remarks); i++)
        packed.push_back(text(b, all[i]));
    return b.CreateVector(packed);
}
Offset<fb::Moved> pack(Builder &b, const Moved &m) {
    return fb::CreateMoved(b, m.group, m.attempt, m.status, text(b, m.text),
                           b.CreateVector(m.workers), b.CreateVector(m.servers),
                           b.CreateString(m.place), m.generation, m.number, remarks(b, m.came),
                           remarks(b, m.went));
}

template <class T> auto pack_all(Builder &b, const std::vector<T> &all) {
    std::vector<decltype(pack(b, all[0]))> packed;
    packed.reserve(all.size());
    for (const T &one : all) packed.push_back(pack(b, one));
    return b.CreateVector(packed);
}

Offset<fb::Rejoin> pack(Builder &b, const Rejoin &m) {
    return fb::CreateRejoin(b, m.job, m.epoch, m.member, pack_all(b, m.gone),
                            pack_all(b, m.replies), pack_all(b, m.moved));
}
Offset<fb::Welcome> pack(Builder &b, const Welcome &m) {
    return fb::CreateWelcome(b, m.epoch, pack_all(b, m.gone));
}
Offset<fb::Deposed> pack(Builder &b, const Deposed &m) { return fb::CreateDeposed(b, m.epoch); }
Offset<fb::Newcomers> pack(Builder &b, const Newcomers &m) {
    return fb::CreateNewcomers(b, m.count);
}

} // namespace

std::vector<uint8_t> encode(const Message &message) {
    Builder b(256);
    // The union's members are in the same order as the variant's (see the assertion).
    static_assert(std::variant_size_v<Message> == size_t(fb::Body::MAX));
    auto body = std::visit([&](const auto &m) { return pack(b, m).Union(); }, message);
    b.Finish(fb::CreateControl(b, fb::Body(message.index() + 1), body));
    return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
}

} // namespace dtrain::wire
