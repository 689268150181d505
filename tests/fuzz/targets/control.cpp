// Control messages: what a member or a coordinator says after the handshake.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include "wire/frame.h"

using namespace dtrain;
using namespace dtrain::wire;
using fuzz::Bytes;

namespace {

// What was accepted can be sent on, and means the same then.
void check(const Message &message) {
    const Bytes once = encode(message);
    FUZZ_REQUIRE(once.size() <= max_frame);
    Message again;
    FUZZ_REQUIRE(decode(once, again) == DTRAIN_OK);
    FUZZ_REQUIRE(again.index() == message.index() && encode(again) == once);
}

Peer some_peer(int32_t index) {
    Peer peer;
    peer.index = index;
    peer.pid = 4711;
    peer.host = "5f3a77e1";
    peer.listener = "10.0.0.4:7001";
    peer.label = "rank 1 (10.0.0.4, pid 4711)";
    peer.transports = {{"tcp", {1, 2, 3}}, {"shm", {4}}};
    peer.cpus = 0x1234;
    peer.location = "zone/rack";
    peer.cores = 2000;
    peer.slot = 1;
    return peer;
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Message message;
    const Bytes body(data, data + size); // aligned
    if (decode(body, message) == DTRAIN_OK) check(message);
    // As a stream of frames
    size_t used = 0;
    for (std::span<const uint8_t> in(data, size);
         next_frame(in, used, message) == DTRAIN_OK && used > 0; in = in.subspan(used)) {
        FUZZ_REQUIRE(used <= in.size());
        check(message);
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    Moved moved{7,
                1,
                DTRAIN_OK,
                "",
                {0, Moved::newcomer},
                {2},
                "5f3a77e1@10.0.0.4:4711",
                2,
                0,
                {"one came"},
                {"one left", "another one"}};
    Gone gone{3, 2, true, "left", true, true, DTRAIN_ERR_PEER};
    GroupReply reply{4, DTRAIN_OK, "", {0, 1}, {1, 2}, 99, 5, true, TagSet{3}, 1};
    const Message all[] = {
        Join{control_version, control_version, 2, 1, some_peer(1), true, 3},
        Waiting{"waiting for rank 1"},
        Roster{1, 2, 0, 2, {some_peer(0), some_peer(1)}},
        Heartbeat{7},
        Leave{true},
        Over{DTRAIN_ERR_BUSY, "try again"},
        gone,
        GroupFailed{5, {0, 1}, DTRAIN_ERR_PEER, "rank 1 is lost", 1, 12},
        Calls{5, {0, 1}, true, {{1, 100, -1, CallKind::all_reduce, 1, 1}, {2, 8, 0}}, true},
        CallsWanted{5},
        RankBehind{5, 1, 100},
        Relay{0, 1, 2, {1, 2, 3}},
        GroupRequest{5, {0, 1}, TagSet{1}, 1000, 1, GroupKind::create, 3, 4, 1},
        reply,
        Rejoin{1, 2, 1, {gone}, {reply}, {moved}},
        Welcome{2, {gone}},
        Deposed{2},
        ReformRequest{5, {0, 1}, 1, 1000, "10.0.0.4:4711", 1, 4, true},
        moved,
    };
    std::vector<Bytes> out;
    for (const Message &message : all) out.push_back(encode(message));
    Bytes stream;
    append_frame(Newcomers{2}, stream);
    append_frame(Heartbeat{9}, stream);
    out.push_back(stream);
    return out;
}
