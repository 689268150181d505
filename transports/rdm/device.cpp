// One opened device: the operations that the core calls.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/device.h"
#include "common/machine.h"
#include "rdm/protection.h"
#include "rdm/registrations.h"

#include <algorithm>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace dtrain::rdm {

Device::Device(const dtrain_tp_host_t *host, const char *kind)
    : DeviceBase(host, kind), handshakes_(&shared_, this) {
    snprintf(own_.kind, sizeof own_.kind, "%s", kind);
}

Device::~Device() {
    if (!wire_) return;
    drain();
    abandon_all();
    handshakes_.clear();
}

dtrain_status_t Device::open(std::unique_ptr<Wire> wire, const char *name) {
    const dtrain_status_t status = wire->open(name);
    if (status != DTRAIN_OK) return status;
    epoll_ = tp::Fd(epoll_create1(EPOLL_CLOEXEC));
    timer_ = tp::Fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    protects_all_ = protects_all(host());
    const int events = wire->event_fd();
    if (!epoll_ || !timer_ || !watch(timer_.get(), &timer_) ||
        (events >= 0 && !watch(events, &wire_)))
        return host().fail(DTRAIN_ERR_IO, "%s: cannot watch the device's events: %s", shared_.name,
                           strerror(errno));
    wire_ = std::move(wire);
    const WireAttr &attr = wire_->attr();
    shared_.wire = wire_.get();
    set_most_eager(std::min<uint64_t>(attr.eager_limit, window - tp::Matcher::message_cost));
    shared_.part_limit = whole_words(attr.packet_limit - Head::wire_length);
    shared_.copy_limit =
        std::clamp(attr.copy_limit, uint32_t(Head::wire_length), attr.packet_limit) -
        Head::wire_length;
    host().random(own_.id.data(), own_.id.size());
    own_.machine = tp::machine_fingerprint("pid");
    own_.pid = htole32(uint32_t(getpid()));
    own_.within_machine = htole16(attr.within_machine ? 1 : 0);
    own_.fabric_len = htole16(uint16_t(wire_->address(own_.fabric)));
    own_.seal(host());
    handshakes_.open(own_);
    return DTRAIN_OK;
}

dtrain_status_t Device::query(dtrain_tp_attr_t *attr) const {
    const WireAttr &wire = wire_->attr();
    dtrain_tp_attr_t own{};
    own.max_iov = tp::max_iov;
    const uint64_t past_records = DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET;
    own.caps = (protects_all_ ? wire.caps & ~past_records : wire.caps) | DTRAIN_TP_CAP_PEER_LOST |
               DTRAIN_TP_CAP_GUARDED |
               (wire_->event_fd() >= 0 ? uint64_t{DTRAIN_TP_CAP_EVENT_FD} : 0);
    // Cards read words, and records hold whole ones; what a processor's send takes at once may end
    // anywhere.
    if (protects_all_ || !wire.by_processors) own.caps |= DTRAIN_TP_CAP_WORDS;
    own.max_message = wire.bulk_limit;
    own.eager_limit = most_eager();
    own.latency_ns = wire.latency_ns;
    own.bandwidth_bps = wire.bandwidth_bps;
    own.remote_latency_ns = wire.remote_latency_ns;
    own.remote_bandwidth_bps = wire.remote_bandwidth_bps;
    own.address_len = Address::wire_length;
    own.rkey_len = protects_all_ ? 0 : wire.rkey_len;
    own.numa_node = -1;
    return tp::answer(own, attr);
}

dtrain_status_t Device::counters(dtrain_tp_counters_t *counters) const {
    dtrain_tp_counters_t own{};
    own.copied = shared_.copied + wire_->traffic().copied;
    own.in_place = wire_->traffic().in_place;
    const RegistrationCounts memory = wire_->registrations();
    own.registrations = memory.misses;
    own.registered = memory.count;
    own.registered_bytes = memory.bytes;
    own.kept = memory.kept;
    own.kept_bytes = memory.kept_bytes;
    own.hits = memory.hits;
    own.evictions = memory.evictions;
    return tp::answer(own, counters);
}

dtrain_status_t Device::address(uint8_t out[Address::wire_length]) {
    memcpy(out, &own_, sizeof own_);
    return DTRAIN_OK;
}

dtrain_status_t Device::reachable(const void *address, size_t len) {
    Address peer;
    if (!peer.decode(address, len))
        return host().fail(DTRAIN_ERR_INVALID, "%s: these %zu bytes are not an address",
                           shared_.name, len);
    if (memcmp(peer.kind, own_.kind, sizeof own_.kind) != 0)
        return host().fail(DTRAIN_ERR_NOT_FOUND, "%s: the peer's device is of another kind, \"%s\"",
                           shared_.name, peer.kind);
    if ((peer.within_machine || own_.within_machine) && peer.machine != own_.machine)
        return host().fail(DTRAIN_ERR_NOT_FOUND,
                           "%s: the peer is on another machine, which this network does not reach",
                           shared_.name);
    connections_.expect(peer.id);
    return DTRAIN_OK;
}

dtrain_status_t Device::route(const void *address, size_t len, std::string *text) {
    Address peer;
    if (!peer.decode(address, len)) return DTRAIN_ERR_INVALID;
    *text = wire_->route(peer.fabric, le16toh(peer.fabric_len));
    return DTRAIN_OK;
}

dtrain_status_t Device::connect(const void *address, size_t len, uint64_t cookie, Endpoint **ep_p) {
    Address peer;
    if (const dtrain_status_t status = reachable(address, len); status != DTRAIN_OK) return status;
    peer.decode(address, len);
    bool fresh;
    Endpoint *ep = attach(peer.id, cookie, &fresh);
    if (!ep) return DTRAIN_ERR_NO_MEMORY;
    if (fresh)
        if (const dtrain_status_t status = begin(peer, ep->connection); status != DTRAIN_OK) {
            discard(ep);
            return status;
        }
    *ep_p = ep;
    return DTRAIN_OK;
}

// A device needs no handshake with itself, nor protection from itself.
dtrain_status_t Device::begin(const Address &peer, Connection *connection) {
    if (peer.id != own_.id) {
        const dtrain_status_t status = handshakes_.connect(peer, connection);
        set_timer();
        return status;
    }
    std::unique_ptr<Channel> channel =
        Handshakes::open_channel(shared_, own_.fabric, le16toh(own_.fabric_len));
    if (!channel) return DTRAIN_ERR_TRANSPORT;
    channel->peer_number = channel->number;
    channel->peer_token = channel->token;
    connection->establish({std::move(channel), {}, {}});
    connections_.report_up(connection);
    set_timer();
    return DTRAIN_OK;
}

// Validates an operation of the caller and reserves its completion slot.
dtrain_status_t Device::prepare(const Endpoint &ep, const dtrain_tp_iov_t *iov, uint32_t n,
                                uint64_t *length) {
    const uint64_t limit = wire_->attr().bulk_limit;
    if (!tp::iov_length(iov, n, length) || *length > limit)
        return host().fail(DTRAIN_ERR_INVALID, "%s: at most %u pieces and %llu bytes are possible",
                           shared_.name, tp::max_iov, static_cast<unsigned long long>(limit));
    if (!ep.connection) return host().fail(DTRAIN_ERR_PEER, "%s: the peer is lost", shared_.name);
    return shared_.completions.reserve(1) ? DTRAIN_OK : no_memory();
}

// Of a prepared operation.
dtrain_status_t Device::past_records() {
    shared_.completions.unreserve();
    return host().fail(DTRAIN_ERR_UNSUPPORTED,
                       "%s: the connection is protected, so its card writes and reads no memory "
                       "by itself",
                       shared_.name);
}

dtrain_status_t Device::no_memory() {
    return host().fail(DTRAIN_ERR_NO_MEMORY, "%s: out of memory", shared_.name);
}

// Creates the job of a prepared operation. nullptr: out of memory; the reservation is canceled.
Job *Device::make_job(Job::Kind kind, Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n,
                      uint64_t length, uint64_t cookie) {
    Job *job = shared_.jobs.get();
    if (!job) {
        shared_.completions.unreserve();
        return nullptr;
    }
    job->kind = kind;
    job->connection = ep->connection;
    job->endpoint = ep;
    job->length = length;
    job->cookie = cookie;
    job->memory.assign(iov, n, length);
    return job;
}

dtrain_status_t Device::send(Endpoint *ep, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                             uint64_t cookie) {
    uint64_t length;
    const dtrain_status_t status = prepare(*ep, iov, n, &length);
    if (status != DTRAIN_OK) return status;
    if (ep->connection->send_now(tag, iov, n, length)) {
        shared_.completions.push({cookie, length, tag, 0, DTRAIN_OK, DTRAIN_TP_SEND, 0});
        return DTRAIN_OK;
    }
    Job *job = make_job(Job::Kind::message, ep, iov, n, length, cookie);
    if (!job) return no_memory();
    job->tag = tag;
    ep->connection->post(job);
    return DTRAIN_OK;
}

// If protection is demanded, no card may write to memory, even for those who know the key.
dtrain_status_t Device::reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) {
    if (!protects_all_) return wire_->reg(mem, mr_p);
    if (mem.mem_type != DTRAIN_MEM_HOST)
        return host().fail(DTRAIN_ERR_UNSUPPORTED,
                           "%s: protected connections carry only host memory", shared_.name);
    *mr_p = new (std::nothrow) Registered;
    return *mr_p ? DTRAIN_OK : no_memory();
}

dtrain_status_t Device::put(Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n, RemoteMemory to,
                            uint64_t imm, uint64_t cookie) {
    uint64_t length;
    const dtrain_status_t status = prepare(*ep, iov, n, &length);
    if (status != DTRAIN_OK) return status;
    if (ep->connection->is_protected()) return past_records();
    Job *job = make_job(Job::Kind::put, ep, iov, n, length, cookie);
    if (!job) return no_memory();
    job->imm = imm;
    return begun(job, ep->connection->put(job, to.address, to.rkey));
}

dtrain_status_t Device::get(Endpoint *ep, const dtrain_tp_iov_t *iov, uint32_t n, RemoteMemory from,
                            uint64_t cookie) {
    uint64_t length;
    const dtrain_status_t status = prepare(*ep, iov, n, &length);
    if (status != DTRAIN_OK) return status;
    if (ep->connection->is_protected()) return past_records();
    Job *job = make_job(Job::Kind::get, ep, iov, n, length, cookie);
    if (!job) return no_memory();
    return begun(job, ep->connection->get(job, from.address, from.rkey));
}

dtrain_status_t Device::begun(Job *job, Sent sent) {
    if (sent == Sent::now || sent == Sent::later) return DTRAIN_OK;
    const dtrain_status_t failure = job->failure;
    shared_.jobs.put(job);
    shared_.completions.unreserve();
    if (sent == Sent::busy) return DTRAIN_ERR_BUSY;
    return host().fail(
        failure, "%s: cannot access the remote memory%s", shared_.name,
        failure == DTRAIN_ERR_NO_MEMORY ? ": the local buffer could not be registered" : "");
}

} // namespace dtrain::rdm
