// The lifetime of networks and devices, and how time advances.
// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include "common/random.h"

#include <algorithm>
#include <unistd.h>

namespace dtrain::tp::sim {

constinit std::mutex Network::registry_mutex_;
constinit Network *Network::registry_ = nullptr;

Network::Network(const Settings &settings, const Host &host) : settings_(settings) {
    host.random(&nonce_, sizeof nonce_);
}

Device *Network::join(const Settings &settings, const dtrain_tp_host_t *host) {
    std::lock_guard registry_lock(registry_mutex_);
    Network *network = registry_;
    while (network && strcmp(network->settings_.network, settings.network) != 0)
        network = network->next_;
    if (network && !(network->settings_ == settings)) return nullptr;
    std::unique_ptr<Network> created;
    if (!network) {
        created.reset(new Network(settings, Host(host)));
        network = created.get();
    }
    std::lock_guard lock(network->mutex_);
    network->devices_.push_back(
        std::make_unique<Device>(*network, host, network->next_device_++, settings));
    if (created) {
        created->next_ = registry_;
        registry_ = created.release();
    }
    return network->devices_.back().get();
}

void Network::leave(Device *device) {
    std::lock_guard registry_lock(registry_mutex_);
    Network *network = &device->network;
    std::unique_lock lock(network->mutex_);
    if (device->armed) network->armed--;
    device->armed = false;
    device->closed = true;
    auto open = [](const auto &d) { return !d->closed; };
    const auto &devices = network->devices_;
    if (std::any_of(devices.begin(), devices.end(), open)) {
        network->bury_closed();
        return;
    }
    device->host.log(DTRAIN_LOG_INFO,
                     "sim: network \"%s\" ended at %lld ns after %llu messages of %llu bytes",
                     network->settings_.network, static_cast<long long>(network->now_),
                     static_cast<unsigned long long>(network->messages_),
                     static_cast<unsigned long long>(network->bytes_));
    network->drop([](const Transfer &) { return true; }, DTRAIN_ERR_CANCELED);
    Network **at = &registry_;
    while (*at != network) at = &(*at)->next_;
    *at = network->next_;
    lock.unlock();
    delete network;
}

Device *Network::find(uint32_t id) {
    for (const auto &device : devices_)
        if (device->id == id && !device->closed) return device.get();
    return nullptr;
}

// When data that leaves the endpoint's device now arrives.
int64_t Network::arrival(Endpoint &endpoint, uint64_t bytes) {
    Device &source = *endpoint.source;
    source.port_free = std::max(now_, source.port_free);
    if (settings_.bandwidth)
        source.port_free += int64_t(double(bytes) * 1e9 / double(settings_.bandwidth));
    const uint64_t jitter = next_random(endpoint.random) % (settings_.jitter + 1);
    return source.port_free + int64_t(settings_.latency + jitter);
}

void Network::launch(std::unique_ptr<Transfer> transfer, uint64_t bytes) {
    Transfer &t = *transfer;
    t.order = uint64_t{t.source->id} << 40 | t.source->sequence++;
    t.due = arrival(*t.endpoint, bytes);
    if (t.kind == DTRAIN_TP_SEND) {
        Endpoint::Lane &lane = t.endpoint->lanes[t.tag];
        t.due = lane.last_due = std::max(t.due, lane.last_due);
        lane.flying++;
    }
    flying_.insert(&t);
    t.source->flying++;
    t.target->flying++;
    if (t.eager) t.target->incoming += t.length + Matcher::message_cost;
    (void)transfer.release(); // it is in the list now
    // If the sender does not poll any more, another device must.
    auto sleeper = std::find_if(devices_.begin(), devices_.end(), [](auto &d) { return d->armed; });
    if (sleeper != devices_.end()) wake(**sleeper);
}

void Network::ground(Transfer *t) {
    flying_.erase(t);
    t->source->flying--;
    t->target->flying--;
    if (t->eager) t->target->incoming -= t->length + Matcher::message_cost;
    if (t->kind != DTRAIN_TP_SEND || !t->endpoint) return;
    auto lane = t->endpoint->lanes.find(t->tag);
    if (--lane->second.flying == 0) t->endpoint->lanes.erase(lane);
}

bool Network::all_quiet() const {
    return std::all_of(devices_.begin(), devices_.end(),
                       [](const auto &d) { return d->closed || d->quiet; });
}

void Network::run() {
    while (!flying_.empty() && (*flying_.begin())->due <= now_) land(*flying_.begin());
    bury_closed();
}

void Network::poll(Device &device) {
    run();
    while (device.completions.empty() && !flying_.empty()) {
        device.quiet = true;
        if (!all_quiet() && ++vain_polls_ < patience * devices_.size()) return;
        vain_polls_ = 0;
        now_ = (*flying_.begin())->due;
        run();
    }
    device.quiet = device.completions.empty();
}

void Network::land(Transfer *t) {
    ground(t);
    Device &target = *t->target;
    if (target.closed) {
        finish(t, DTRAIN_ERR_PEER);
    } else if (t->kind == DTRAIN_TP_SEND) {
        messages_++;
        bytes_ += t->length;
        target.held.push_back(t);
        settle(target);
    } else if (t->kind == DTRAIN_TP_CONNECT) {
        finish(t, DTRAIN_OK);
    } else {
        put_or_get(t);
    }
}

// Completes all transfers in progress that meet the condition.
template <class Condition> void Network::drop(Condition &&condition, dtrain_status_t status) {
    for (auto at = flying_.begin(); at != flying_.end();) {
        Transfer *t = *at++;
        if (!condition(*t)) continue;
        ground(t);
        finish(t, status);
    }
    for (const auto &device : devices_)
        for (Transfers *list : {&device->held, &device->announced})
            for (Transfer *t = list->front(), *next = nullptr; t; t = next) {
                next = Transfers::next(t);
                if (!condition(*t)) continue;
                list->remove(t);
                if (list == &device->announced)
                    device->matcher.release(device->matcher.take_if(
                        [t](const Message &message) { return message.origin == t; }));
                finish(t, status);
            }
}

void Network::disconnect(Endpoint *endpoint) {
    drop([endpoint](const Transfer &t) { return t.endpoint == endpoint && !t.eager; },
         DTRAIN_ERR_CANCELED);
    for (Transfer *t : flying_)
        if (t->endpoint == endpoint) t->endpoint = nullptr;
    for (const auto &device : devices_)
        for (Transfer *t = device->held.front(); t; t = Transfers::next(t))
            if (t->endpoint == endpoint) t->endpoint = nullptr;
    // the reservation for PEER_LOST
    if (endpoint->target) endpoint->source->completions.unreserve();
    endpoint->source->endpoints.remove(endpoint);
    delete endpoint;
    bury_closed();
}

void Network::withdraw(const Device &source, uint64_t cookie) {
    drop(
        [&](const Transfer &t) {
            return t.source == &source && t.cookie == cookie && t.kind != DTRAIN_TP_CONNECT &&
                   !t.eager;
        },
        DTRAIN_ERR_CANCELED);
    bury_closed();
}

void Network::bury_closed() {
    for (size_t i = 0; i < devices_.size();)
        if (devices_[i]->closed && !devices_[i]->flying)
            bury(devices_[i].get());
        else
            i++;
}

// No transfer to or from it is in progress: its peers lose it.
void Network::bury(Device *gone) {
    drop([gone](const Transfer &t) { return t.target == gone; }, DTRAIN_ERR_PEER);
    for (const auto &device : devices_) {
        auto *e = device->endpoints.front();
        for (; e; e = decltype(device->endpoints)::next(e)) {
            if (e->target != gone) continue;
            e->target = nullptr;
            complete(*device, {e->cookie, 0, 0, 0, DTRAIN_ERR_PEER, DTRAIN_TP_PEER_LOST, 0});
        }
    }
    std::erase_if(devices_, [gone](const auto &device) { return device.get() == gone; });
}

} // namespace dtrain::tp::sim
