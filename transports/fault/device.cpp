// Wraps the devices, connections and completions of another transport.
// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <memory>
#include <new>

namespace dtrain::tp::fault {

Device::Device(const dtrain_tp_host_t *table, const dtrain_tp_plugin_t &plugin, const Settings &s)
    : host(table), settings(s), random_(s.seed) {
    memcpy(&ops, plugin.ops, std::min<size_t>(plugin.ops->struct_size, sizeof ops));
}

Device::~Device() {
    if (inner) ops.close(inner);
    while (Operation *operation = all_.pop_front()) pool_.put(operation); // not reported
    host.log(DTRAIN_LOG_INFO,
             "fault: of %llu sends over %s: dropped %llu, truncated %llu, bits flipped %llu, "
             "duplicated %llu, delayed %llu, connections reset %llu",
             static_cast<unsigned long long>(counts_.sends), settings.over,
             static_cast<unsigned long long>(counts_.dropped),
             static_cast<unsigned long long>(counts_.truncated),
             static_cast<unsigned long long>(counts_.flipped),
             static_cast<unsigned long long>(counts_.duplicated),
             static_cast<unsigned long long>(counts_.delayed),
             static_cast<unsigned long long>(counts_.resets));
}

dtrain_status_t Device::refuse_broken() const {
    return host.fail(DTRAIN_ERR_PEER, "fault: this connection was reset");
}

// nullptr: no memory.
Operation *Device::accept(Endpoint &endpoint, uint32_t kind, uint64_t cookie) {
    if (!own_.reserve()) return nullptr;
    Operation *operation = pool_.get();
    if (!operation) {
        own_.unreserve();
        return nullptr;
    }
    operation->endpoint = &endpoint;
    operation->kind = kind;
    operation->cookie = cookie;
    all_.push_back(operation);
    return operation;
}

void Device::forget(Operation *operation) {
    own_.unreserve();
    all_.remove(operation);
    pool_.put(operation);
}

void Device::complete(Operation *operation, dtrain_status_t status) {
    own_.push(
        {operation->cookie, operation->length, operation->tag, 0, status, operation->kind, 0});
    all_.remove(operation);
    pool_.put(operation);
}

dtrain_status_t Device::connect(const void *address, size_t len, uint64_t cookie, Endpoint **out) {
    std::unique_ptr<Endpoint> endpoint(new (std::nothrow) Endpoint{this, nullptr, cookie});
    if (!endpoint || !own_.reserve()) return DTRAIN_ERR_NO_MEMORY; // reserved for PEER_LOST
    if (counts_.connects++ < settings.refuse) {
        own_.push({cookie, 0, 0, 0, DTRAIN_ERR_PEER, DTRAIN_TP_CONNECT, 0});
        *out = endpoint.release();
        return DTRAIN_OK;
    }
    const dtrain_status_t status = ops.connect(inner, address, len, cookie, &endpoint->inner);
    if (status == DTRAIN_OK)
        *out = endpoint.release();
    else
        own_.unreserve();
    return status;
}

// Held operations that were posted once wait for that completion.
template <class Which> void Device::drop_held(const Which &which, dtrain_status_t status) {
    for (Operation *o = held_.front(), *next = nullptr; o; o = next) {
        next = decltype(held_)::next(o);
        if (!which(*o)) continue;
        held_.remove(o);
        o->to_post = 0;
        if (!o->posted) complete(o, status);
    }
}

void Device::disconnect(Endpoint *endpoint) {
    drop_held([=](const Operation &o) { return o.endpoint == endpoint; }, DTRAIN_ERR_CANCELED);
    for (Operation *o = all_.front(); o; o = decltype(all_)::next(o))
        if (o->endpoint == endpoint) o->endpoint = nullptr;
    if (endpoint->inner) {
        ops.disconnect(endpoint->inner);
        own_.unreserve();
    }
    delete endpoint;
}

void Device::break_endpoint(Endpoint &endpoint) {
    counts_.resets++;
    ops.disconnect(endpoint.inner);
    endpoint.inner = nullptr;
    drop_held([&](const Operation &o) { return o.endpoint == &endpoint; }, DTRAIN_ERR_PEER);
    for (Operation *o = all_.front(); o; o = decltype(all_)::next(o))
        if (o->endpoint == &endpoint) o->reset = true;
    own_.push({endpoint.cookie, 0, 0, 0, DTRAIN_ERR_PEER, DTRAIN_TP_PEER_LOST, 0});
}

void Device::withdraw(uint64_t cookie) {
    withdraw_inner(cookie); // receives
    const auto is_it = [cookie](const Operation &o) { return o.cookie == cookie; };
    drop_held(is_it, DTRAIN_ERR_CANCELED);
    for (Operation *o = all_.front(); o; o = decltype(all_)::next(o))
        if (is_it(*o)) withdraw_inner(inner_cookie(o));
}

void Device::withdraw_inner(uint64_t cookie) {
    if (ops.withdraw)
        ops.withdraw(inner, cookie);
    else
        ops.cancel(inner, cookie);
}

// Converts a completion of the wrapped transport to the caller's. False: there is nothing to
// report.
bool Device::translate(dtrain_tp_done_t &done) {
    if (done.kind != DTRAIN_TP_SEND && done.kind != DTRAIN_TP_PUT && done.kind != DTRAIN_TP_GET)
        return true;
    auto *operation = reinterpret_cast<Operation *>(uintptr_t(done.cookie));
    if (done.status == DTRAIN_ERR_CANCELED && operation->reset) done.status = DTRAIN_ERR_PEER;
    if (operation->status == DTRAIN_OK) operation->status = done.status;
    if (--operation->posted || operation->to_post) return false;
    done.cookie = operation->cookie;
    done.status = operation->status;
    if (done.kind == DTRAIN_TP_SEND) done.bytes = operation->length;
    forget(operation);
    return true;
}

int32_t Device::progress(dtrain_tp_done_t *done, uint32_t max) {
    release_held();
    const int32_t before = own_.pop(done, max);
    const int32_t came = ops.progress(inner, done + before, max - uint32_t(before));
    if (came < 0) return before ? before : came;
    int32_t n = before;
    for (int32_t i = before; i < before + came; i++)
        if (translate(done[i])) done[n++] = done[i];
    return n;
}

} // namespace dtrain::tp::fault
