// Sends parts of tables from a worker to another, over a communicator of these two.
// SPDX-License-Identifier: Apache-2.0
//
// Messages: the number of parts; for each of them a heading, the table's parameters with its name,
// and its function's states; for each of its pieces a heading, the keys, and the numbers.
#include "elastic/handover.h"

#include "ps/server/handed_part.h"
#include "ps/table/protocol.h"
#include "ps/table/table_wire.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::elastic {

using cluster::NextJob;
using collectives::Communicator;
using ps::HandedPart;
using ps::HandedPiece;

namespace {

constexpr int32_t giver = 0, taker = 1; // ranks of the two
constexpr int32_t group_tag = 0x64740001;
// Of what a peer may announce.
constexpr uint64_t most_text = 1 << 20, most_piece = 64 << 20;

struct PartHeading {
    uint64_t params_bytes, states_bytes, server, updates, rate, pieces;
};
struct PieceHeading {
    uint64_t array, first, count, keys, bytes;
};

struct Handing {
    int32_t from, to; // ranks of the old communicator
};

// Equal on all members: those that are not in the next generation, lost ones included, each with
// one that is.
std::vector<Handing> handings(const std::vector<int32_t> &members, const NextJob &next) {
    std::vector<int32_t> stay, go;
    for (size_t rank = 0; rank < members.size(); rank++)
        (std::ranges::count(next.workers, members[rank]) > 0 ? stay : go).push_back(int32_t(rank));
    std::vector<Handing> all;
    if (stay.empty()) return all;
    for (size_t i = 0; i < go.size(); i++) all.push_back({go[i], stay[i % stay.size()]});
    return all;
}

// Blocking messages between the two.
class Channel {
  public:
    Channel(Communicator &comm, int64_t deadline_ns) : comm_(comm), deadline_ns_(deadline_ns) {}

    Status send(const void *data, uint64_t bytes) {
        engine::Request request;
        const Status s = comm_.post_send(data, bytes, taker, 0, options(request));
        return s == DTRAIN_OK ? outcome(request) : s;
    }
    Status receive(void *data, uint64_t bytes) {
        engine::Request request;
        Status s = comm_.post_recv(data, bytes, giver, 0, options(request));
        if (s == DTRAIN_OK) s = outcome(request);
        if (s != DTRAIN_OK || request.outcome().bytes == bytes) return s;
        return malformed("a message's length");
    }
    static Status malformed(const char *what) {
        return fail(DTRAIN_ERR_CORRUPT, "reform: a part of a table has come with a wrong %s", what);
    }

  private:
    collectives::CallOptions options(engine::Request &request) const {
        collectives::CallOptions o;
        o.request = &request;
        o.timeout_ns = comm_.timeout_until(deadline_ns_);
        o.blocking = true;
        return o;
    }
    static Status outcome(const engine::Request &request) {
        const Status s = request.outcome().status;
        if (s != DTRAIN_OK) set_error_text(request.error());
        return s;
    }

    Communicator &comm_;
    const int64_t deadline_ns_;
};

Status send(Channel &to, const std::string &name, const HandedPart &part) {
    const std::string params = encode_table(part.params, name);
    const std::string states = ps::encode_states(part.params.states);
    const PartHeading heading{params.size(),
                              states.size(),
                              part.server,
                              part.updates,
                              std::bit_cast<uint64_t>(part.rate),
                              part.pieces.size()};
    if (Status s = to.send(&heading, sizeof heading); s != DTRAIN_OK) return s;
    if (Status s = to.send(params.data(), params.size()); s != DTRAIN_OK) return s;
    if (Status s = to.send(states.data(), states.size()); s != DTRAIN_OK) return s;
    for (const HandedPiece &piece : part.pieces) {
        const PieceHeading its{piece.array, piece.range.first, piece.range.count, piece.keys.size(),
                               piece.numbers.size()};
        if (Status s = to.send(&its, sizeof its); s != DTRAIN_OK) return s;
        if (!piece.keys.empty())
            if (Status s = to.send(piece.keys.data(), piece.keys.size() * sizeof(uint64_t));
                s != DTRAIN_OK)
                return s;
        if (Status s = to.send(piece.numbers.data(), piece.numbers.size()); s != DTRAIN_OK)
            return s;
    }
    return DTRAIN_OK;
}

Status send_all(Channel &to, const ps::Legacy &legacy) {
    std::vector<std::pair<std::string, std::shared_ptr<const HandedPart>>> all;
    for (const auto &[name, part] : legacy.parts)
        if (std::optional<HandedPart> whole = ps::hand_over(part))
            all.emplace_back(name, std::make_shared<HandedPart>(std::move(*whole)));
    for (const auto &[name, parts] : legacy.handed)
        for (const auto &part : parts) all.emplace_back(name, part);
    const uint64_t count = all.size();
    if (Status s = to.send(&count, sizeof count); s != DTRAIN_OK) return s;
    for (const auto &[name, part] : all)
        if (Status s = send(to, name, *part); s != DTRAIN_OK) return s;
    return DTRAIN_OK;
}

Status receive_text(Channel &from, uint64_t bytes, std::string &out) {
    if (bytes > most_text) return Channel::malformed("length of its parameters");
    out.resize(bytes);
    return from.receive(out.data(), bytes);
}

Status receive(Channel &from, const ps::TableParams &params, HandedPiece &out) {
    PieceHeading heading;
    if (Status s = from.receive(&heading, sizeof heading); s != DTRAIN_OK) return s;
    if (heading.bytes > most_piece || heading.keys > most_piece / sizeof(uint64_t))
        return Channel::malformed("length of a piece");
    out.array = heading.array;
    out.range = {heading.first, heading.count};
    out.keys.resize(heading.keys);
    out.numbers.resize(heading.bytes);
    if (!out.keys.empty())
        if (Status s = from.receive(out.keys.data(), out.keys.size() * sizeof(uint64_t));
            s != DTRAIN_OK)
            return s;
    if (Status s = from.receive(out.numbers.data(), out.numbers.size()); s != DTRAIN_OK) return s;
    return out.fits(params) ? DTRAIN_OK : Channel::malformed("piece");
}

Status receive(Channel &from, std::string &name, HandedPart &out) {
    PartHeading heading;
    std::string params, states;
    if (Status s = from.receive(&heading, sizeof heading); s != DTRAIN_OK) return s;
    if (Status s = receive_text(from, heading.params_bytes, params); s != DTRAIN_OK) return s;
    if (Status s = receive_text(from, heading.states_bytes, states); s != DTRAIN_OK) return s;
    uint32_t bad = ps::field_count;
    if (!decode_table(params.data(), params.size(), out.params, name, bad) ||
        bad != ps::field_count || heading.server > UINT32_MAX ||
        !ps::decode_states(states.data(), states.size(), out.params.states))
        return Channel::malformed("description");
    out.server = uint32_t(heading.server);
    out.updates = heading.updates;
    out.rate = std::bit_cast<double>(heading.rate);
    for (uint64_t i = 0; i < heading.pieces; i++)
        if (Status s = receive(from, out.params, out.pieces.emplace_back()); s != DTRAIN_OK)
            return s;
    return DTRAIN_OK;
}

// All parts or none.
Status receive_all(Channel &from, ps::Handed &received) {
    uint64_t count = 0;
    if (Status s = from.receive(&count, sizeof count); s != DTRAIN_OK) return s;
    if (count > ps::max_tables) return Channel::malformed("number of parts");
    std::vector<std::pair<std::string, std::shared_ptr<const HandedPart>>> all;
    for (uint64_t i = 0; i < count; i++) {
        std::string name;
        auto part = std::make_shared<HandedPart>();
        if (Status s = receive(from, name, *part); s != DTRAIN_OK) return s;
        all.emplace_back(std::move(name), std::move(part));
    }
    for (auto &[name, part] : all) received[name].push_back(std::move(part));
    return DTRAIN_OK;
}

Status run(Communicator &old, const Handing &handing, int64_t deadline_ns, const ps::Legacy &own,
           ps::Handed &received) {
    std::unique_ptr<Communicator> two;
    const int32_t ranks[] = {handing.from, handing.to};
    // The other one may have failed after the agreement. The next generation must not wait for it.
    cluster::Session &session = old.session();
    const int64_t meet_by =
        std::min(deadline_ns, session.agent().clock().now_ns() +
                                  cluster::Session::forming_patience(session.options()));
    if (Status s = old.create_group(ranks, group_tag, old.timeout_until(meet_by), two);
        s != DTRAIN_OK)
        return s;
    Channel channel(*two, deadline_ns);
    return two->rank() == giver ? send_all(channel, own) : receive_all(channel, received);
}

} // namespace

void hand_over(Communicator &old, const NextJob &next, int64_t deadline_ns, const ps::Legacy &own,
               ps::Handed &received) {
    for (const Handing &handing : handings(old.ranks().ids, next)) {
        if (old.rank() != handing.from && old.rank() != handing.to) continue;
        const int32_t other = old.rank() == handing.from ? handing.to : handing.from;
        if (!old.session().alive(uint32_t(old.ranks().ids[size_t(other)]))) continue;
        if (run(old, handing, deadline_ns, own, received) == DTRAIN_OK) continue;
        old.session().agent().log().write(
            DTRAIN_LOG_WARN, "reform: rank %d could not hand its parts of tables to rank %d: %s",
            handing.from, handing.to, error_text());
    }
}

} // namespace dtrain::elastic
