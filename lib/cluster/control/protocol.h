// The events and actions of the control protocol's state machines.
// SPDX-License-Identifier: Apache-2.0
//
// Sockets drive these in production (driver.h), a simulator in tests.
#pragma once
#include "cluster/host/identity.h"
#include "wire/control.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace dtrain::cluster {

// An authenticated control connection. Numbers are never reused. Accepted connections have even
// numbers, assigned by the driver; dialed ones have odd numbers, assigned by the protocol.
using Link = uint64_t;
inline constexpr Link local_link = 0; // from a coordinator to the member in the same process

struct Settings {
    Identity identity;
    int64_t heartbeat_interval = 0, heartbeat_timeout = 0; // ns
    int64_t join_deadline = INT64_MAX;                     // monotonic, ns
    // Random; the coordinator sends its own to all.
    uint64_t job = 0;
    bool authenticated = false; // peers prove that they know a secret
    bool elastic = false;       // processes may come while the job runs
    wire::Peer self;            // role, index, pid, host, transports
};

// ---- events ------------------------------------------------------------------------------------
struct Accepted {
    Link link = 0;
    int32_t member = -1;       // proven by the handshake
    std::string remote, local; // numeric addresses without ports
};
struct Dialled { // answers Dial
    Link link = 0;
    std::string listener; // own control listener, at the address from which this connection comes
};
struct DialFailed { // answers Dial
    Link link = 0;
    Status status = DTRAIN_OK; // DTRAIN_ERR_AUTH ends joining; after all others it dials again
    bool refused = false;      // that host answered that no process listens there
    std::string text;
};
struct Received {
    Link link = 0;
    wire::Message message;
};
struct Closed { // by the peer or the network, not in answer to Close
    Link link = 0;
    std::string text;
    Status status = DTRAIN_ERR_PEER; // DTRAIN_ERR_CORRUPT: it carried what no member sends
};
struct TurnedAway {      // a connection that failed its handshake
    int32_t member = -1; // the member that it claimed to be, or -1
    std::string remote, text;
};
struct Tick {}; // next_deadline() has been reached
using Event = std::variant<Accepted, Dialled, DialFailed, Received, Closed, TurnedAway, Tick>;

// ---- actions -----------------------------------------------------------------------------------
struct Send {
    Link link = 0;
    // Shared by all receivers, since rosters are large.
    std::shared_ptr<const wire::Message> message;

    Send(Link to, wire::Message one)
        : link(to), message(std::make_shared<const wire::Message>(std::move(one))) {}
    Send(Link to, std::shared_ptr<const wire::Message> one) : link(to), message(std::move(one)) {}
};
struct Close { // after everything queued before has been sent
    Link link = 0;
};
struct Dial {
    Link link = 0;
    int32_t member = -1;
    std::string address; // "": worker 0, found by the rendezvous
};
// For the program: Roster (joined), Gone, GroupFailed, CallsWanted, RankBehind, Relay, GroupReply,
// Over (the job is over here), Waiting (a line for the log), Newcomers, Moved (for a newcomer it
// takes the place of a Roster).
struct Report {
    wire::Message message;
};
// Be found at the job's rendezvous from now on: this process coordinates an elastic job.
struct OpenDoor {};
using Action = std::variant<Send, Close, Dial, Report, OpenDoor>;
using Actions = std::vector<Action>;

} // namespace dtrain::cluster
