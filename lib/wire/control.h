// Control messages as plain values, and their conversion to and from bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "wire/call_record.h"
#include "wire/limits.h"

#include <array>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace dtrain::wire {

// Version of the messages below, and of all else that ranks of a job send each other or read in
// each other's memory (collectives/window/window.h); peers must have one in common.
inline constexpr uint32_t control_version = 5;

struct Transport {
    std::string name;
    std::vector<uint8_t> bytes;
};

struct Peer {
    uint8_t role = 0; // 0: worker, 1: server
    int32_t index = 0, pid = 0;
    std::string host, listener, label;
    std::vector<Transport> transports;
    uint64_t cpus = 0;    // hash of the CPUs it may use
    std::string location; // of its host, outermost level first: "zone/rack"
    bool serves = false;  // a worker that serves tables beside the dedicated servers
    uint32_t cores = 0;   // it may use, in thousandths; 0: unknown
    uint8_t slot = 0;     // of this job in the tags of messages to the member
    // How it checks messages and results: 0: not at all; else option verify.results, plus one.
    uint32_t verify = 0;
};

struct Join {
    uint32_t version_min = control_version, version_max = control_version;
    int32_t workers = 0, servers = 0;
    Peer self;
    // It has no place of its own yet: it waits until the members of a running job take it in.
    bool newcomer = false;
    uint32_t generation = 0; // of the elastic job in which it has its place
};
struct Waiting {
    std::string text; // "": the member is admitted, and there is nothing else to say yet
};
struct Roster { // members [first, first + members.size()) of total
    uint64_t job = 0, epoch = 0;
    uint32_t first = 0, total = 0;
    std::vector<Peer> members;
};
struct Heartbeat {
    uint64_t epoch = 0;
};
struct Leave {
    bool moved = false; // its process is in the next generation of the elastic job
};
struct Over {
    Status status = DTRAIN_OK; // DTRAIN_ERR_BUSY in answer to Join: try again
    std::string text;
};
struct Gone {
    uint64_t epoch = 0;
    int32_t member = 0;
    bool left = false;
    std::string text;
    bool silent = false; // lost, but its process may still exist
    bool moved = false;  // left, for the next generation
    // Lost: DTRAIN_ERR_CORRUPT if its connection carried what no member sends.
    Status status = DTRAIN_ERR_PEER;
};
// Beyond the numbers of all calls: the group has not failed, but a member waits for the others to
// shrink it, or to reform the job.
inline constexpr uint64_t no_calls = UINT64_MAX;
struct GroupFailed {
    uint64_t group = 0;
    std::vector<int32_t> members;
    Status status = DTRAIN_OK;
    std::string text;
    int32_t guilty = -1;
    uint64_t from = 0; // calls before this number may still succeed
};
struct Calls {
    uint64_t group = 0;
    std::vector<int32_t> members;
    bool stalled = false;
    std::vector<CallRecord> calls; // seq ascending
    bool stuck = false;            // stalled for longer than option stall.limit allows
};
struct CallsWanted {
    uint64_t group = 0;
};
struct RankBehind {
    uint64_t group = 0;
    int32_t rank = 0;
    uint64_t seq = 0;
};
struct Relay {
    int32_t from = 0, to = 0;
    uint32_t channel = 0;
    std::vector<uint8_t> bytes;
};
inline constexpr size_t group_tags = 512;
using TagSet = std::array<uint64_t, group_tags / 64>; // bit t of word t / 64: tag id t is in use
// Which members make up a new group; the rules are in group_votes.cpp.
enum class GroupKind : uint8_t {
    shrink, // those of the list that live
    create, // exactly those of the list
    last = create
};
inline constexpr int32_t no_tag = -1;
struct GroupRequest {   // a member asks for a new group
    uint64_t group = 0; // of which it is made
    std::vector<int32_t> members;
    TagSet used{};
    int64_t timeout_ns = 0;
    uint32_t serial = 0; // numbers the member's requests in the job, from 1
    GroupKind kind = GroupKind::shrink;
    int32_t user_tag = 0;  // tells requests with equal lists apart
    int32_t held = no_tag; // tag id that the member has taken for the new group
    uint32_t round = 0;    // how many times the members were told to ask again
};
struct GroupReply {
    uint64_t group = 0; // as in the requests
    Status status = DTRAIN_OK;
    std::string text;
    std::vector<int32_t> members;  // those that asked; of a new group: in its order
    std::vector<uint32_t> serials; // of their requests
    uint64_t new_group = 0;
    uint32_t tag_id = 0;
    bool again = false; // there is no new group yet, because the members hold different tags
    TagSet used{};      // if again: the tags that any of them uses
    uint32_t round = 0; // if again: of their next requests
};
// Asks for the next generation of an elastic job.
struct ReformRequest {
    uint64_t group = 0;
    std::vector<int32_t> members;
    uint32_t attempt = 0; // how many times this member has asked for this group before
    int64_t timeout_ns = 0;
    std::string place;                 // where the sender listens, should it become rank 0
    int32_t smallest = 1, largest = 0; // number of workers; largest 0: no limit
    bool leaves = false;               // it is not in the next generation
};
// The next generation: to those who asked for it, to the newcomers in it, and to servers.
struct Moved {
    uint64_t group = 0;
    uint32_t attempt = 0;
    Status status = DTRAIN_OK;
    std::string text;
    // In the order of the new ranks and servers: the old member, or `newcomer`.
    std::vector<int32_t> workers, servers;
    std::string place; // where the new rank 0 listens
    uint32_t generation = 0;
    int32_t number = -1;           // of the receiving newcomer among all of them, or -1
    std::vector<std::string> came; // the newcomers, in the order of their numbers
    std::vector<std::string> went; // why a member of the old generation is not in the new one

    static constexpr int32_t newcomer = -1; // in workers and servers
};
struct Rejoin {
    uint64_t job = 0, epoch = 0;
    int32_t member = 0;
    std::vector<Gone> gone;
    std::vector<GroupReply> replies; // the last ones that it has received
    std::vector<Moved> moved;
};
struct Welcome {
    uint64_t epoch = 0;
    std::vector<Gone> gone;
};
struct Deposed {
    uint64_t epoch = 0;
};
struct Newcomers {
    uint32_t count = 0; // how many wait to be taken in
};

using Message = std::variant<Join, Waiting, Roster, Heartbeat, Leave, Over, Gone, GroupFailed,
                             Calls, CallsWanted, RankBehind, Relay, GroupRequest, GroupReply,
                             Rejoin, Welcome, Deposed, ReformRequest, Moved, Newcomers>;

// A flatbuffer (without the frame's length). Texts longer than max_text are cut.
std::vector<uint8_t> encode(const Message &message);
// Verifies the buffer, then checks every field against limits.h; the text of DTRAIN_ERR_CORRUPT
// names the field. Texts are made printable. Member numbers are only known to be below max_members:
// the receiver knows the size of its job.
Status decode(std::span<const uint8_t> bytes, Message &message);

} // namespace dtrain::wire
