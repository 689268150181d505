// The wire over libfabric: bulk messages, which the sender writes into the memory that the receiver
// grants. Everything in a packet is checked before it is used.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/locked_memory.h"
#include "ofi/wire.h"

#include <cstring>
#include <rdma/fi_errno.h>
#include <utility>

namespace dtrain::ofi {

Sent Wire::announce(rdm::Link *link, const void *head, size_t len, Operation *operation) {
    struct {
        Announce announce;
        uint8_t head[rdm::max_head];
    } packet;
    if (!flush_answers()) return Sent::busy;
    Move *bulk = make_move(Move::Kind::bulk, static_cast<ofi::Link *>(link), operation);
    if (!bulk) return Sent::busy;
    bulk->name.token = secrets_.next();
    packet.announce.bulk = bulk->name;
    memcpy(packet.head, head, len);
    const Sent sent = send_packet(bulk->link, &packet, sizeof packet.announce + len, nullptr);
    operation->wire = bulk;
    if (sent == Sent::now) return Sent::later;
    moves_.remove(bulk->name.id);
    move_pool_.put(bulk);
    return sent;
}

// Only this side reads the memory, and only once a destination is granted.
bool Wire::withdraw(Operation *operation) {
    auto *bulk = static_cast<Move *>(operation->wire);
    if (bulk->granted) return false; // it ends soon
    moves_.remove(bulk->name.id);
    move_pool_.put(bulk);
    return true;
}

void Wire::break_off(Operation *operation) {
    const auto its = [operation](const Transfer &t) { return t.operation == operation; };
    Transfer *transfer = transfers_.find_if(its);
    if (!transfer) return; // it has failed already
    transfers_.remove(transfer->id);
    revoke(*transfer);
    transfer_pool_.put(transfer);
    fail_later(operation);
}

void Wire::on_announce(const uint8_t *bytes, size_t len) {
    Announce packet;
    if (len < sizeof packet) return;
    memcpy(static_cast<void *>(&packet), bytes, sizeof packet);
    auto *remote = new (std::nothrow) Remote;
    if (!remote) { // the sender notices when the link breaks: the protocol misses a head
        host_.log(DTRAIN_LOG_WARN, "ofi: no memory for an announced message");
        return;
    }
    remote->bulk = packet.bulk;
    protocol_.on_announced(bytes + sizeof packet, len - sizeof packet, remote);
}

void Wire::drop(rdm::Link *link, rdm::Remote *which) {
    auto *remote = static_cast<Remote *>(which);
    Grant grant;
    grant.bulk = remote->bulk;
    if (link) answer(static_cast<ofi::Link *>(link), &grant, grant.length());
    delete remote;
}

void Wire::fetch(rdm::Link *which, rdm::Remote *remote, Operation *operation) {
    auto *link = static_cast<ofi::Link *>(which);
    Transfer *transfer = transfer_pool_.get();
    Grant grant;
    if (transfer && transfers_.insert(transfer, &transfer->id)) {
        transfer->operation = operation;
        transfer->link = link;
        grant.transfer = transfer->id;
        grant.bulk = static_cast<Remote *>(remote)->bulk;
        if (place(transfer, &grant)) {
            delete static_cast<Remote *>(remote);
            return answer(link, &grant, grant.length());
        }
        transfers_.remove(transfer->id);
    }
    if (transfer) transfer_pool_.put(transfer);
    drop(link, remote);
    fail_later(operation);
}

// Describes the memory to which the message goes.
bool Wire::place(Transfer *transfer, Grant *grant) {
    uint64_t len;
    for (tp::IovCursor rest = transfer->operation->memory; rest.remaining(); rest.advance(len)) {
        int error = 0;
        uint8_t *piece = rest.piece(&len);
        Registration *registration = registered(rest, piece, len);
        transfer->given[grant->count] = registration;
        if (!registration) {
            auto &own = transfer->registrations[grant->count];
            own = cache_.hold(piece, len, &error);
            registration = own.get();
        }
        if (error) {
            unregistered(transfer->operation, len, error);
            return false;
        }
        grant->targets[grant->count++] = registration->target(piece, len);
    }
    return true;
}

void Wire::fail_later(Operation *fetched) {
    fetched->wire = failed_;
    failed_ = fetched;
}

void Wire::tell_failed() {
    while (Operation *fetched = failed_) {
        failed_ = static_cast<Operation *>(fetched->wire);
        protocol_.on_fetched(fetched, false);
    }
}

void Wire::on_grant(const uint8_t *bytes, size_t len) {
    Grant grant;
    if (len < offsetof(Grant, targets) || len > sizeof grant) return;
    memcpy(static_cast<void *>(&grant), bytes, len);
    Move *bulk = moves_.find(grant.bulk.id);
    if (!bulk || bulk->kind != Move::Kind::bulk || bulk->name.token != grant.bulk.token ||
        bulk->granted)
        return; // for a link that was lost
    uint64_t wanted = 0;
    bool good = grant.count <= tp::max_iov && len == grant.length();
    for (uint8_t i = 0; good && i < grant.count; i++)
        good = grant.targets[i].length &&
               !__builtin_add_overflow(wanted, grant.targets[i].length, &wanted);
    if (!good || wanted > bulk->operation->memory.remaining()) {
        break_link(bulk->link,
                   rdm::Fault{.why = "protocol error: more bytes were granted than announced"});
        return;
    }
    bulk->granted = true;
    bulk->grant = grant;
    bulk->operation->memory.truncate(wanted);
    if (grant.count)
        advance(bulk);
    else
        end(bulk, true);
}

void Wire::on_immediate(uint64_t immediate) {
    Transfer *transfer = transfers_.find(uint32_t(immediate));
    if (transfer) return end(transfer, true);
    host_.log(DTRAIN_LOG_DEBUG, "ofi: received an immediate that belongs to no operation");
}

void Wire::on_failed(const uint8_t *bytes, size_t len) {
    Failed packet;
    if (len != sizeof packet) return;
    memcpy(static_cast<void *>(&packet), bytes, len);
    if (Transfer *transfer = transfers_.find(packet.transfer)) end(transfer, false);
}

// The sender must not write any more: makes the keys that it knows invalid.
void Wire::revoke(Transfer &transfer) {
    for (const auto &own : transfer.registrations)
        if (own) cache_.revoke(*own);
    for (Registration *&given : transfer.given)
        if (given && !std::exchange(given, nullptr)->renew(secrets_, fabric_))
            host_.log(DTRAIN_LOG_WARN,
                      "ofi: registered memory cannot be registered again, after a message to it "
                      "was given up; %s",
                      raise_lock_limit);
}

void Wire::end(Transfer *transfer, bool ok) {
    transfers_.remove(transfer->id);
    Operation *operation = transfer->operation;
    if (ok)
        traffic_.in_place += operation->memory.remaining();
    else
        revoke(*transfer);
    // Removes its registrations first: nothing is written there any more.
    transfer_pool_.put(transfer);
    protocol_.on_fetched(operation, ok);
}

// Ends all operations of a link that is being removed.
void Wire::end_all(ofi::Link *link) {
    tell_failed();
    while (Move *move = moves_.find_if([link](const Move &m) { return m.link == link; }))
        end(move, false);
    while (Transfer *t = transfers_.find_if([link](const Transfer &x) { return x.link == link; }))
        end(t, false);
}

} // namespace dtrain::ofi
