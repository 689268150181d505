// The wire over libfabric: addresses, and links to them.
// SPDX-License-Identifier: Apache-2.0
#include "common/route.h"
#include "ofi/wire.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ofi {
namespace {

constexpr size_t max_card_name = 32;
constexpr int64_t patience_ns = 20'000'000; // for memory that libfabric still holds for a lost link

// The length of the IP address at the start of these bytes; 0: there is none.
size_t ip_length(const uint8_t *address, size_t len) {
    sockaddr beginning;
    if (len < sizeof beginning) return 0;
    memcpy(&beginning, address, sizeof beginning);
    const bool is_ip = beginning.sa_family == AF_INET || beginning.sa_family == AF_INET6;
    const size_t needed = is_ip ? tp::length_of(&beginning) : 0;
    return needed <= len ? needed : 0;
}

} // namespace

// Writes libfabric's address; after an IP address also the card's name, for error texts.
size_t Wire::address(uint8_t out[rdm::max_fabric_address]) {
    size_t len = rdm::max_fabric_address;
    if (fi_getname(&fabric_.endpoint->fid, out, &len)) return 0;
    if (ip_length(out, len) != len) return len;
    const std::string card = fabric_.info->domain_attr->name;
    return len + card.copy(reinterpret_cast<char *>(out) + len, max_card_name);
}

std::string Wire::route(const uint8_t *address, size_t len) {
    sockaddr_storage own{}, peer{};
    size_t own_len = sizeof own;
    const size_t ip_len = ip_length(address, len);
    if (!ip_len || fi_getname(&fabric_.endpoint->fid, &own, &own_len))
        return "option ofi.domain chooses other cards";
    memcpy(&peer, address, ip_len);
    const auto name_len = int(std::min(len - ip_len, max_card_name));
    char cards[256];
    snprintf(cards, sizeof cards, "from card %s to card %.*s: ", fabric_.info->domain_attr->name,
             name_len, reinterpret_cast<const char *>(address + ip_len));
    return cards + tp::route_text(reinterpret_cast<sockaddr *>(&own),
                                  reinterpret_cast<sockaddr *>(&peer), "ofi.domain");
}

rdm::Link *Wire::link(const uint8_t *address, size_t len) {
    const size_t ip_len = ip_length(address, len);
    Peer *peer = find_peer(address, ip_len ? ip_len : std::min(len, rdm::max_fabric_address));
    auto *made = peer ? new (std::nothrow) ofi::Link : nullptr;
    if (!made) {
        if (peer) release(peer);
        host_.fail(DTRAIN_ERR_TRANSPORT, "ofi: this is not an address of a peer, or out of memory");
        return nullptr;
    }
    made->peer = peer;
    links_.push_back(made);
    return made;
}

Peer *Wire::find_peer(const uint8_t *address, size_t len) {
    for (Peer *peer = peers_.front(); peer; peer = peers_.next(peer))
        if (peer->length == len && !memcmp(peer->address, address, len)) {
            peer->links++;
            return peer;
        }
    auto *peer = new (std::nothrow) Peer;
    if (!peer) return nullptr;
    peer->length = len;
    peer->links = 1;
    memcpy(peer->address, address, len);
    if (fi_av_insert(fabric_.peers.get(), peer->address, 1, &peer->number, 0, nullptr) == 1) {
        peers_.push_back(peer);
        return peer;
    }
    delete peer;
    return nullptr;
}

void Wire::release(Peer *peer) {
    if (--peer->links) return;
    peers_.remove(peer);
    fi_av_remove(fabric_.peers.get(), &peer->number, 1, 0);
    delete peer;
}

void Wire::unlink(rdm::Link *which) {
    auto *link = static_cast<ofi::Link *>(which);
    if (!link->broken.why) link->broken.why = "given up";
    links_.remove(link);
    end_all(link);
    // Libfabric still holds memory of operations that are over. Usually it notices soon that the
    // peer is gone; if it does not, there is no peer to exchange bytes with.
    const int64_t end = host_.now_ns() + patience_ns;
    while (link->under_way && host_.now_ns() < end) complete();
    for (Packet &packet : packets_)
        if (packet.link == link && packet.payload)
            protocol_.on_sent(std::exchange(packet.payload, nullptr), false);
    for (Answer *a = answers_.front(); a; a = answers_.next(a))
        if (a->link == link) a->link = nullptr;
    release(link->peer);
    link->given_up = true;
    given_up_.push_back(link);
    lend(link);
    back(link);
}

// Counts an operation that libfabric now holds; back() counts it off.
void Wire::lend(ofi::Link *link) {
    link->under_way++;
    under_way_++;
}

void Wire::back(ofi::Link *link) {
    under_way_--;
    if (--link->under_way || !link->given_up) return;
    given_up_.remove(link);
    delete link;
}

} // namespace dtrain::ofi
