// The handshakes in progress on a device: attempts to connect, peers that introduce themselves, and
// deadlines.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/handshakes.h"
#include "rdm/connection.h"
#include "rdm/protection.h"

#include <sys/syscall.h>

namespace dtrain::rdm {
namespace {

template <class T> bool read(const uint8_t *&body, size_t &len, T *into) {
    if (len < sizeof *into) return false;
    memcpy(static_cast<void *>(into), body, sizeof *into);
    body += sizeof *into;
    len -= sizeof *into;
    return true;
}

// Through a descriptor of a process on this machine its end is noticed at once, whatever the
// network reports.
tp::Fd process_of(const PeerProcess &peer, const Address &own) {
    if (peer.machine != own.machine || peer.pid == own.pid) return {};
    return tp::Fd(int(syscall(SYS_pidfd_open, pid_t(le32toh(peer.pid)), 0)));
}

} // namespace

void Handshakes::open(const Address &own) {
    own_ = own;
    path_ = path_of(shared_.host, shared_.wire->attr().by_processors, own.machine);
}

void Handshakes::clear() {
    while (Handshake *handshake = strangers_.front()) forget(handshake);
    while (Handshake *handshake = accepted_.front()) forget(handshake);
    while (Handshake *handshake = attempts_.front()) forget(handshake);
}

std::unique_ptr<Channel> Handshakes::open_channel(Shared &shared, const uint8_t *address,
                                                  size_t len) {
    std::unique_ptr<Channel> channel(new (std::nothrow) Channel);
    if (!channel || !shared.channels.insert(channel.get(), &channel->number)) return nullptr;
    shared.host.random(&channel->token, sizeof channel->token);
    channel->link = shared.wire->link(address, len);
    if (!channel->link) {
        shared.channels.remove(channel->number);
        return nullptr;
    }
    channel->link->owner = channel.get();
    return channel;
}

void Handshakes::close_channel(Shared &shared, std::unique_ptr<Channel> channel) {
    if (!channel) return;
    shared.wire->unlink(channel->link);
    shared.channels.remove(channel->number);
}

std::unique_ptr<Handshake> Handshakes::make(tp::Role role, const Address &peer) {
    std::unique_ptr<Handshake> handshake(new (std::nothrow) Handshake);
    if (!handshake) return nullptr;
    handshake->role = role;
    handshake->peer = PeerProcess::of(peer);
    handshake->own = tp::Hello::make(shared_.host, own_.id, peer.id);
    handshake->own.path = path_;
    // A responder makes keys for those whose hello is good.
    if (role == tp::Role::initiator && !offer(*handshake)) return nullptr;
    handshake->deadline_ns =
        shared_.host.now_ns() + (role == tp::Role::initiator ? deadline_ns : stranger_ns);
    handshake->channel = open_channel(shared_, peer.fabric, le16toh(peer.fabric_len));
    if (!handshake->channel) return nullptr;
    handshake->channel->handshake = handshake.get();
    return handshake;
}

void Handshakes::add(std::unique_ptr<Handshake> handshake) {
    const bool stranger = handshake->role == tp::Role::responder;
    if (stranger && stranger_count_ >= protocol::max_strangers)
        give_up(strangers_.front(), DTRAIN_ERR_PEER, "too many unauthenticated peers at once");
    stranger_count_ += stranger;
    list_of(*handshake).push_back(handshake.get());
    (void)handshake.release();
    shared_.attention = true;
}

Handshakes::List &Handshakes::list_of(const Handshake &handshake) {
    if (handshake.role == tp::Role::initiator) return attempts_;
    return handshake.accepted ? accepted_ : strangers_;
}

Handshake *Handshakes::attempt_at(const DeviceId &peer) const {
    if (peer == own_.id) return nullptr; // both ends are here
    for (Handshake *one = attempts_.front(); one; one = List::next(one))
        if (one->peer.id == peer) return one;
    return nullptr;
}

// The peer may count on its connection now, so that of this side must not be established.
void Handshakes::accept(Handshake *handshake) {
    strangers_.remove(handshake);
    stranger_count_--;
    handshake->accepted = true;
    accepted_.push_back(handshake);
    const bool expected = owner_.is_expected(handshake->peer.id);
    handshake->deadline_ns = expected ? INT64_MAX : shared_.host.now_ns() + tp::guest_patience_ns;
    guest_count_ += !expected;
    if (Handshake *own = attempt_at(handshake->peer.id)) {
        own->makes_way = true;
        if (own->due == Kind::confirmation) own->due = {};
    }
    if (guest_count_ <= tp::most_guests) return;
    Handshake *oldest = accepted_.front();
    while (!is_guest(*oldest)) oldest = List::next(oldest);
    give_up(oldest, DTRAIN_ERR_PEER, "too many unconfirmed connections at once");
}

bool Handshakes::is_guest(const Handshake &handshake) {
    return handshake.accepted && handshake.deadline_ns != INT64_MAX;
}

dtrain_status_t Handshakes::connect(const Address &peer, Connection *connection) {
    std::unique_ptr<Handshake> handshake = make(tp::Role::initiator, peer);
    if (!handshake) return DTRAIN_ERR_PEER;
    handshake->connection = connection;
    connection->handshake = handshake.get();
    handshake->due = Kind::hello;
    handshake->verdict = peer.judge(shared_.host); // a peer with another secret is not contacted
    add(std::move(handshake));
    return DTRAIN_OK;
}

void Handshakes::forget(Handshake *handshake) {
    // Unless it is finished or refused, the peer may still count on it.
    if (handshake->channel && !handshake->broken && handshake->verdict == tp::Verdict::accepted &&
        (handshake->proven || handshake->accepted))
        rdm::send(*shared_.wire, *handshake->channel, {.kind = Kind::bye}, nullptr, 0, nullptr);
    list_of(*handshake).remove(handshake);
    guest_count_ -= is_guest(*handshake);
    if (handshake->role == tp::Role::responder) stranger_count_ -= !handshake->accepted;
    if (handshake->connection) handshake->connection->handshake = nullptr;
    close_channel(shared_, std::move(handshake->channel));
    delete handshake;
}

// Makes its keys. False, with the text: no memory.
bool Handshakes::offer(Handshake &h) const {
    return h.guard.begin(shared_.host, &h.own.offer) == DTRAIN_OK;
}

// Once both proofs are good.
Verdict Handshakes::protect(Handshake &h) {
    return tp::protect(h.guard, "rdm", h.role, h.own, h.other);
}

// Of this side. Proofs are computed when they are needed, as strangers take room.
tp::Proof Handshakes::proof_of(const Handshake &h) const {
    tp::Proof own, expected;
    const bool good = tp::prove_both(shared_.host, "rdm", h.role, h.own, h.other, &own, &expected);
    return good ? own : tp::Proof{};
}

bool Handshakes::is_proven(const Handshake &h, const tp::Proof &by_peer) const {
    tp::Proof own, expected;
    return tp::prove_both(shared_.host, "rdm", h.role, h.own, h.other, &own, &expected) &&
           tp::equal_macs(by_peer.data(), expected.data());
}

void Handshakes::on_hello(const uint8_t *body, size_t len) {
    Introduction introduction;
    Address address;
    if (!read(body, len, &introduction) || !address.decode(body, len) ||
        memcmp(address.kind, own_.kind, sizeof own_.kind) != 0 ||
        introduction.hello.from != address.id)
        return refusals_.refused("the peer does not use this protocol");
    if (const tp::Verdict v = address.judge(shared_.host); v != tp::Verdict::accepted)
        return refusals_.refused(text_of(v));
    if (owner_.admit(address.id) != Verdict::accepted)
        return; // the attempt from this side continues
    if (is_known(introduction, address.id)) return;
    std::unique_ptr<Handshake> h = make(tp::Role::responder, address);
    if (!h) return refusals_.refused("no memory, or no route to the peer");
    h->other = introduction.hello;
    h->channel->received = 1; // the hello
    h->channel->peer_number = le32toh(introduction.number);
    h->channel->peer_token = introduction.token;
    h->verdict = tp::judge(h->own, h->other);
    h->due = h->verdict == tp::Verdict::accepted ? Kind::reply : Kind::verdict;
    if (h->due == Kind::reply && !offer(*h)) return close_channel(shared_, std::move(h->channel));
    add(std::move(h));
}

// Whether it is said again. Another's hello is never taken for it: all of it is compared.
bool Handshakes::is_known(const Introduction &introduction, const DeviceId &peer) const {
    for (const List *list : {&strangers_, &accepted_})
        for (const Handshake *h = list->front(); h; h = List::next(h))
            if (h->channel->peer_token == introduction.token && h->peer.id == peer &&
                h->channel->peer_number == le32toh(introduction.number) &&
                !memcmp(&h->other, &introduction.hello, sizeof h->other))
                return true;
    return false;
}

bool Handshakes::greets_again(const Handshake &h) const {
    if (!h.hellos || h.due != Kind{} || h.is_answered() || h.makes_way) return false;
    const int64_t begun_ns = h.deadline_ns - deadline_ns;
    return shared_.host.now_ns() >= begun_ns + hello_ns * ((1 << h.hellos) - 1);
}

void Handshakes::on_packet(Handshake *h, const Head &head, const uint8_t *body, size_t len) {
    const bool initiator = h->role == tp::Role::initiator;
    shared_.attention = true;
    if (initiator && head.kind == Kind::reply && h->hellos && !h->is_answered()) {
        Introduction introduction;
        tp::Proof proof;
        if (!read(body, len, &introduction) || !read(body, len, &proof)) return;
        h->other = introduction.hello;
        h->channel->sent = 1; // the hello, however often it was said
        h->channel->peer_number = le32toh(introduction.number);
        h->channel->peer_token = introduction.token;
        h->verdict = tp::judge(h->own, h->other);
        if (h->verdict != tp::Verdict::accepted) return;
        if (h->other.from != h->peer.id) h->verdict = tp::Verdict::wrong_device;
        if (!is_proven(*h, proof)) h->verdict = tp::Verdict::wrong_proof;
        if (h->verdict == tp::Verdict::accepted) h->verdict = protect(*h);
        h->due = Kind::proof;
    } else if (!initiator && head.kind == Kind::proof && h->due == Kind{} && !h->accepted &&
               h->verdict == tp::Verdict::accepted) {
        tp::Proof proof;
        if (!read(body, len, &proof)) return;
        if (!is_proven(*h, proof))
            h->verdict = tp::Verdict::wrong_proof;
        else if (const Verdict v = owner_.admit(h->peer.id); v != Verdict::accepted)
            h->verdict = v;
        else
            h->verdict = protect(*h);
        h->due = Kind::verdict;
    } else if (initiator && head.kind == Kind::verdict) {
        const auto verdict = head.tag <= uint64_t(tp::Verdict::last) ? tp::Verdict(head.tag)
                                                                     : tp::Verdict::wrong_version;
        if (verdict == tp::Verdict::duplicate)
            return; // the peer's attempt continues, or the
                    // deadline passes
        h->verdict = verdict;
        if (verdict == tp::Verdict::accepted && h->due == Kind{} && h->proven && !h->makes_way)
            h->due = Kind::confirmation;
    } else if (h->accepted && head.kind == Kind::confirmation) {
        finish(h); // messages may follow at once
    } else if ((h->accepted || h->is_answered()) && head.kind == Kind::bye) {
        h->broken = "the peer has given it up";
    }
}

Introduction Handshakes::introduction(const Handshake &h) const {
    return {h.own, htole32(h.channel->number), h.channel->token};
}

Sent Handshakes::send_due(Handshake &h) {
    struct {
        Introduction introduction;
        Address address;
    } hello{introduction(h), own_};
    struct {
        Introduction introduction;
        tp::Proof proof;
    } reply{introduction(h), {}};
    if (h.due == Kind::reply || h.due == Kind::proof) reply.proof = proof_of(h);
    const Head head{.kind = h.due, .tag = uint64_t(h.verdict)};
    const auto send = [&](const void *body, size_t len) {
        return rdm::send(*shared_.wire, *h.channel, head, body, len, nullptr);
    };
    switch (h.due) {
    case Kind::hello:
        h.channel->sent = 0; // the responder takes one of them
        return send(&hello, sizeof hello);
    case Kind::reply: return send(&reply, sizeof reply);
    case Kind::proof: return send(&reply.proof, sizeof reply.proof);
    default: return send(nullptr, 0);
    }
}

void Handshakes::work() {
    for (List *list : {&strangers_, &accepted_, &attempts_})
        for (Handshake *h = list->front(), *next; h; h = next) {
            next = List::next(h);
            advance(h);
        }
}

void Handshakes::advance(Handshake *h) {
    const bool initiator = h->role == tp::Role::initiator;
    if (h->broken) return give_up(h, DTRAIN_ERR_PEER, h->broken);
    if (initiator && h->verdict != tp::Verdict::accepted)
        return give_up(h, status_of(h->verdict), text_of(h->verdict));
    if (greets_again(*h)) h->due = Kind::hello;
    if (h->due != Kind{} && send_due(*h) == Sent::now) {
        const Kind sent = std::exchange(h->due, {});
        h->hellos += sent == Kind::hello;
        h->proven |= sent == Kind::proof || sent == Kind::reply;
        if (sent == Kind::confirmation) return finish(h);
        if (sent == Kind::verdict && h->verdict == tp::Verdict::accepted) return accept(h);
        if (sent == Kind::verdict) h->deadline_ns = shared_.host.now_ns() + refusal_ns;
    }
    shared_.waits |= h->due != Kind{};
    if (shared_.host.now_ns() < h->deadline_ns) return;
    if (h->verdict == tp::Verdict::accepted)
        give_up(h, DTRAIN_ERR_PEER, "no answer in time: is its process alive and in the library?");
    else
        give_up(h, status_of(h->verdict), text_of(h->verdict));
}

void Handshakes::finish(Handshake *h) {
    Connection *connection = h->connection;
    const DeviceId peer = h->peer.id;
    Route route{std::move(h->channel), process_of(h->peer, own_), std::move(h->guard)};
    forget(h);
    owner_.joined(connection, peer, std::move(route));
}

void Handshakes::give_up(Handshake *h, dtrain_status_t status, const char *reason) {
    Connection *connection = h->connection;
    const DeviceId peer = h->peer.id;
    const bool accepted = h->accepted;
    forget(h);
    if (connection) return owner_.failed(connection, status, reason);
    refusals_.ended(status, reason);
    Handshake *own = accepted ? attempt_at(peer) : nullptr;
    if (own && own->makes_way) own->broken = reason; // the peer can be tried again
}

} // namespace dtrain::rdm
