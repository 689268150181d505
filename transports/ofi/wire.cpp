// The wire over libfabric: its beginning and end, links, and packets that go out.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/wire.h"
#include "common/number.h"
#include "common/route.h"
#include "ofi/locked_memory.h"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string>

namespace dtrain::ofi {
namespace {

constexpr size_t packet_count = 256;
constexpr size_t buffer_count = 4, buffer_size = 256 << 10;
constexpr uint64_t chunk_limit = 1 << 20; // small messages wait for no more than a few of them
constexpr uint32_t stale_limit = 3;       // times that events told of nothing
constexpr size_t max_card_name = 32;
constexpr int most_unread = 100'000;
constexpr int64_t patience_ns = 100'000'000; // with what a lost link still has of our memory

// What is known of providers. A packet has to be one that the provider delivers in order: what it
// moves by a rendezvous of its own it completes late, and shared memory only when it was received.
struct Model {
    const char *provider;
    uint32_t packet_limit, eager_limit;
    uint64_t latency_ns, bandwidth_bps; // measured inside a host, as far as they are emulated
};
constexpr Model models[] = {
    {"net", (128 << 10) + 64, 128 << 10, 6'000, 5'000'000'000},
    {"sockets", 64 << 10, 64 << 10, 5'000'000, 500'000'000},
    {"shm", 4096, 4096, 600, 5'000'000'000},
    {"tcp;ofi_rxm", 16 << 10, 32 << 10, 8'000, 5'000'000'000},
    {"udp;ofi_rxd", 16 << 10, 16 << 10, 12'000, 250'000'000},
    {"", Packet::size, Packet::size, 2'000, 10'000'000'000}, // all others
};
const Model &model_of(const std::string &provider) {
    const Model *model = models;
    while (*model->provider && provider != model->provider) model++;
    return *model;
}

// Of the IP address that these bytes begin with; 0: they do not.
size_t ip_length(const uint8_t *address, size_t len) {
    sockaddr beginning;
    if (len < sizeof beginning) return 0;
    memcpy(&beginning, address, sizeof beginning);
    const bool is_ip = beginning.sa_family == AF_INET || beginning.sa_family == AF_INET6;
    const size_t needed = is_ip ? tp::length_of(&beginning) : 0;
    return needed <= len ? needed : 0;
}

} // namespace

Wire::~Wire() {
    // Over verbs, libfabric 1.17 crashes when something that came is not read before the end.
    fi_cq_data_entry unread;
    for (int i = 0; fabric_.rx && i < most_unread; i++)
        if (fi_cq_read(fabric_.rx.get(), &unread, 1) != 1) break;
    fabric_.endpoint.reset(); // and with it what it has of our memory
}

dtrain_status_t Wire::open(const char *device) {
    const std::string name = device;
    const size_t slash = name.find('/');
    dtrain_status_t status =
        fabric_.open(host_, name.substr(0, slash),
                     slash == std::string::npos ? std::string() : name.substr(slash + 1));
    if (status != DTRAIN_OK) return status;
    const fi_info &info = *fabric_.info;
    const std::string provider = info.fabric_attr->prov_name;
    const bool shm = provider == "shm";
    local_ = fabric_.needs(FI_MR_LOCAL);
    inject_limit_ = info.tx_attr->inject_size;
    chunk_limit_ = std::min<uint64_t>(chunk_limit, info.ep_attr->max_msg_size);
    attr_.within_machine = shm || !strcmp(info.domain_attr->name, "lo");
    attr_.caps = DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET;
    attr_.bulk_limit = uint64_t{1} << 40;
    const Model &model = model_of(provider);
    attr_.packet_limit = local_ ? uint32_t(Packet::size) : model.packet_limit;
    attr_.eager_limit = model.eager_limit;
    attr_.rkey_len = rkey_length;
    attr_.latency_ns = model.latency_ns;
    attr_.bandwidth_bps = model.bandwidth_bps;
    uint64_t cache_mib = 0;
    status = tp::read_number(host_, "ofi.cache", 1'000'000, cache_mib);
    if (status != DTRAIN_OK) return status;
    if (local_) cache_.open(cache_mib << 20);
    return open_buffers();
}

dtrain_status_t Wire::open_buffers() {
    packet_bytes_.reset(new (std::nothrow) uint8_t[packet_count * Packet::size]);
    if (!packet_bytes_) return host_.fail(DTRAIN_ERR_NO_MEMORY, "ofi: no memory for packets");
    int error = 0;
    if (local_)
        packet_registration_ = Registration::make(host_, fabric_, packet_bytes_.get(),
                                                  packet_count * Packet::size, &error);
    packets_.resize(packet_count);
    for (size_t i = 0; i < packet_count && !error; i++) {
        packets_[i].bytes = packet_bytes_.get() + i * Packet::size;
        if (local_) packets_[i].descriptor = packet_registration_->descriptor();
        free_packets_.push_back(&packets_[i]);
    }
    size_t least = attr_.packet_limit;
    if (!error)
        error = fi_setopt(&fabric_.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                          sizeof least);
    for (size_t i = 0; i < buffer_count && !error; i++) {
        auto buffer = std::make_unique<Buffer>();
        buffer->kind = Context::Kind::buffer;
        buffer->bytes.reset(new (std::nothrow) uint8_t[buffer_size]);
        if (!buffer->bytes) return host_.fail(DTRAIN_ERR_NO_MEMORY, "ofi: no memory for buffers");
        if (local_)
            buffer->registration =
                Registration::make(host_, fabric_, buffer->bytes.get(), buffer_size, &error);
        buffers_.push_back(std::move(buffer));
        if (!error && !post(buffers_.back().get())) error = -FI_EIO;
    }
    if (local_) check_lock_limit(host_, packet_count * Packet::size + buffer_count * buffer_size);
    if (!error) return DTRAIN_OK;
    const bool locked = error == -FI_ENOMEM || error == -FI_EPERM;
    return host_.fail(DTRAIN_ERR_TRANSPORT, "ofi: cannot register memory for packets: %s%s%s",
                      fi_strerror(-error), locked ? "; " : "", locked ? raise_lock_limit : "");
}

bool Wire::post(Buffer *buffer) {
    iovec piece{buffer->bytes.get(), buffer_size};
    void *descriptor = buffer->registration ? buffer->registration->descriptor() : nullptr;
    fi_msg message{};
    message.msg_iov = &piece;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &buffer->libfabric;
    return !fi_recvmsg(fabric_.endpoint.get(), &message, FI_MULTI_RECV);
}

// Libfabric's; behind an IP address the card's name, for messages.
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
        host_.fail(DTRAIN_ERR_TRANSPORT, "ofi: this is no address of a peer, or out of memory");
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
    if (!link->why) link->why = "given up";
    links_.remove(link);
    end_all(link);
    // Libfabric still has memory of operations that are over. Usually it notices soon that the peer
    // is gone; when it does not, there is nobody to exchange bytes with.
    const int64_t end = host_.now_ns() + patience_ns;
    while (link->under_way && host_.now_ns() < end) complete();
    for (Packet &packet : packets_)
        if (packet.link == link && packet.payload)
            protocol_.on_sent(std::exchange(packet.payload, nullptr), false);
    for (Answer *a = answers_.front(); a; a = answers_.next(a))
        if (a->link == link) a->link = nullptr;
    release(link->peer);
    link->given_up = true;
    lend(link);
    back(link);
}

// One operation more, and less, that libfabric has.
void Wire::lend(ofi::Link *link) {
    link->under_way++;
    under_way_++;
}

void Wire::back(ofi::Link *link) {
    under_way_--;
    if (--link->under_way == 0 && link->given_up) delete link;
}

Sent Wire::send(rdm::Link *link, const void *head, size_t len, Operation *payload) {
    if (!flush_answers()) return Sent::busy; // they go first
    return send_packet(static_cast<ofi::Link *>(link), head, len, payload);
}

Sent Wire::send_packet(ofi::Link *link, const void *head, size_t len, Operation *payload) {
    if (link->why) return Sent::broken;
    const size_t total = len + (payload ? payload->memory.remaining() : 0);
    if (total <= inject_limit_ && !ends_) {
        uint8_t bytes[Packet::size];
        if (total <= sizeof bytes) {
            memcpy(bytes, head, len);
            if (payload) tp::IovCursor(payload->memory).gather(bytes + len, total - len);
            const auto error =
                int(fi_inject(fabric_.endpoint.get(), bytes, total, link->peer->number));
            if (error) return refused(link, error);
            if (payload) traffic_.copied += total - len;
            return Sent::now;
        }
    }
    if (free_packets_.empty()) return Sent::busy;
    Packet *packet = free_packets_.back();
    packet->link = link;
    packet->kind = Context::Kind::packet;
    packet->payload = nullptr;
    memcpy(packet->bytes, head, len);
    if (total > Packet::size) return send_payload(link, packet, len, payload);
    if (payload) tp::IovCursor(payload->memory).gather(packet->bytes + len, total - len);
    const auto error = int(fi_send(fabric_.endpoint.get(), packet->bytes, total, packet->descriptor,
                                   link->peer->number, &packet->libfabric));
    if (error) return refused(link, error);
    if (payload) traffic_.copied += total - len;
    free_packets_.pop_back();
    unsent_++;
    lend(link);
    return Sent::now;
}

// A payload that goes out from where it is.
Sent Wire::send_payload(ofi::Link *link, Packet *packet, size_t len, Operation *payload) {
    iovec pieces[tp::max_iov + 1];
    pieces[0] = {packet->bytes, len};
    int n = payload->memory.describe(pieces + 1, payload->memory.remaining());
    const bool copies = size_t(n) + 1 > fabric_.info->tx_attr->iov_limit;
    if (copies) {
        const uint64_t length = payload->memory.remaining();
        packet->copy.reset(new (std::nothrow) uint8_t[length]);
        if (!packet->copy) return Sent::busy;
        tp::IovCursor(payload->memory).gather(packet->copy.get(), length);
        pieces[1] = {packet->copy.get(), length};
        n = 1;
    }
    fi_msg message{};
    message.msg_iov = pieces;
    message.iov_count = size_t(n) + 1;
    message.addr = link->peer->number;
    message.context = &packet->libfabric;
    packet->kind = copies ? Context::Kind::packet : Context::Kind::payload;
    packet->payload = copies ? nullptr : payload;
    const auto error = int(fi_sendmsg(fabric_.endpoint.get(), &message, 0));
    if (error) { // the payload is still its sender's
        packet->payload = nullptr;
        packet->copy.reset();
        return refused(link, error);
    }
    (copies ? traffic_.copied : traffic_.in_place) += payload->memory.remaining();
    free_packets_.pop_back();
    unsent_++;
    lend(link);
    return copies ? Sent::now : Sent::later;
}

Sent Wire::refused(ofi::Link *link, int error) {
    if (error == -FI_EAGAIN) return Sent::busy;
    break_link(link, fi_strerror(-error));
    return Sent::broken;
}

void Wire::answer(ofi::Link *link, const void *bytes, size_t len) {
    if (flush_answers() && send_packet(link, bytes, len, nullptr) != Sent::busy) return;
    Answer *late = answer_pool_.get();
    if (!late) return break_link(link, "out of memory");
    late->link = link;
    late->length = len;
    memcpy(static_cast<void *>(&late->grant), bytes, len);
    answers_.push_back(late);
}

bool Wire::flush_answers() {
    while (Answer *first = answers_.front()) {
        if (first->link &&
            send_packet(first->link, &first->grant, first->length, nullptr) == Sent::busy)
            return false;
        answers_.remove(first);
        answer_pool_.put(first);
    }
    return true;
}

bool Wire::arm() {
    if (!answers_.empty() || !waiting_.empty() || failed_ || broken_links_) return false;
    if (!fabric_.can_wait()) return false;
    pollfd events{fabric_.events.get(), POLLIN, 0};
    if (::poll(&events, 1, 0) == 0) return true;
    if (++stale_ >= stale_limit) clear_stale_signals();
    return false;
}

// Fi_trywait() of "net" in libfabric 1.17 does not take back the signal of a completion that has
// been read since, so that its descriptor stays readable for ever. A read that waits takes it back,
// unless it finds something; then it returns at once.
void Wire::clear_stale_signals() {
    stale_ = 0;
    fi_cq_data_entry entry;
    if (fi_cq_sread(fabric_.tx.get(), &entry, 1, nullptr, 1) == 1 && entry.op_context)
        on_completed(static_cast<Context *>(entry.op_context), 0);
    if (fi_cq_sread(fabric_.rx.get(), &entry, 1, nullptr, 1) == 1) on_received(entry);
}

bool Wire::quiet() {
    ends_ = true;
    return !unsent_ && answers_.empty() && waiting_.empty();
}

} // namespace dtrain::ofi
