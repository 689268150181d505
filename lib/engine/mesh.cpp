// SPDX-License-Identifier: Apache-2.0
#include "engine/mesh.h"

#include <algorithm>
#include <cstdio>

namespace dtrain::engine {
namespace {

// A machine may be too busy to answer in time; whether the member lives, the control plane knows.
constexpr int64_t connect_patience = 15 * second;
constexpr int64_t first_backoff = 10 * ms, longest_backoff = 1 * second;
constexpr uint32_t doublings = 7;
constexpr int64_t pause_after_failure = 5 * second;

} // namespace

Mesh::~Mesh() {
    agent_.locked([&] {
        for (Peer &peer : peers_) drop(peer.member);
    });
}

Status Mesh::prepare(std::span<const std::vector<PeerAddress>> members, Listener *listener) {
    listener_ = listener;
    peers_.resize(members.size());
    for (uint32_t m = 0; m < members.size(); m++) {
        Peer &peer = peers_[m];
        peer.done = &peer_event;
        peer.mesh = this;
        peer.member = m;
        std::string why;
        for (auto &device : agent_.devices()) {
            auto theirs =
                std::find_if(members[m].begin(), members[m].end(), [&](const PeerAddress &address) {
                    return address.transport == device->name();
                });
            if (theirs == members[m].end()) continue;
            if (device->ops().reachable(device->dev(), theirs->bytes.data(),
                                        theirs->bytes.size()) != DTRAIN_OK) {
                why = error_text();
                continue;
            }
            peer.device = device.get();
            peer.address.assign(theirs->bytes.begin(), theirs->bytes.end());
            break;
        }
        if (peer.device == nullptr)
            return fail(DTRAIN_ERR_TRANSPORT,
                        "no transport reaches member %u (%s); open one that both sides have "
                        "(option transports), with an address that other hosts reach (option "
                        "listen.address)",
                        m, why.empty() ? "none in common" : why.c_str());
    }
    return DTRAIN_OK;
}

Status Mesh::endpoint(uint32_t member, dtrain_tp_ep_t *&ep) {
    Peer &peer = peers_[member];
    if (peer.ep == nullptr) {
        int64_t now = agent_.clock().now_ns();
        if (now < peer.next_ns) return DTRAIN_ERR_BUSY;
        if (peer.attempts++ == 0) peer.first_ns = now;
        Status s = peer.device->ops().connect(peer.device->dev(), peer.address.data(),
                                              peer.address.size(), uint64_t(&peer), &peer.ep);
        if (s != DTRAIN_OK) {
            peer.ep = nullptr;
            return connection_lost(s) ? attempt_failed(peer, s) : s;
        }
    }
    ep = peer.ep;
    return DTRAIN_OK;
}

// BUSY: it will be tried again.
Status Mesh::attempt_failed(Peer &peer, Status status) {
    peer.failure = status;
    int64_t now = agent_.clock().now_ns();
    bool may_pass = status == DTRAIN_ERR_PEER || status == DTRAIN_ERR_IO;
    bool alive = listener_ == nullptr || listener_->alive(peer.member);
    if (may_pass && alive && now - peer.first_ns < connect_patience) {
        uint32_t shift = std::min(peer.attempts - 1, doublings);
        peer.next_ns = now + std::min(first_backoff << shift, longest_backoff);
        return DTRAIN_ERR_BUSY;
    }
    tell(peer, trouble(peer.member).c_str());
    peer.next_ns = now + pause_after_failure;
    return status;
}

std::string Mesh::trouble(uint32_t member) const {
    const Peer &peer = peers_[member];
    if (peer.up || peer.failure == DTRAIN_OK) return "";
    char text[128];
    double seconds = double(agent_.clock().now_ns() - peer.first_ns) / double(second);
    std::snprintf(text, sizeof text, "no %s connection in %.1f s (attempts: %u; %s)",
                  std::string(peer.device->name()).c_str(), seconds, peer.attempts,
                  status_text(peer.failure));
    return text;
}

void Mesh::tell(const Peer &peer, const char *text) {
    if (listener_ != nullptr) listener_->peer_broken(peer.member, text);
}

Status Mesh::send(uint32_t member, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                  Completion *completion) {
    Peer &peer = peers_[member];
    dtrain_tp_ep_t *ep = nullptr;
    Status s = endpoint(member, ep);
    if (s != DTRAIN_OK) return s;
    if (!peer.up) return DTRAIN_ERR_BUSY;
    s = peer.device->ops().send(ep, tag, iov, n, uint64_t(completion));
    if (connection_lost(s)) tell(peer, std::string(error_text()).c_str());
    return s;
}

Status Mesh::recv(uint32_t member, uint64_t tag, uint64_t mask, const dtrain_tp_iov_t *iov,
                  uint32_t n, Completion *completion) {
    transport::Device &device = *peers_[member].device;
    return device.ops().recv(device.dev(), tag, mask, iov, n, uint64_t(completion));
}

void Mesh::cancel(uint32_t member, Completion *completion) {
    transport::Device &device = *peers_[member].device;
    device.ops().cancel(device.dev(), uint64_t(completion));
}

void Mesh::purge(uint64_t tag, uint64_t mask) {
    for (auto &device : agent_.devices()) device->ops().purge(device->dev(), tag, mask);
}

void Mesh::drop(uint32_t member) {
    Peer &peer = peers_[member];
    if (peer.ep == nullptr) return;
    dtrain_tp_ep_t *ep = peer.ep;
    peer.ep = nullptr;
    peer.up = false;
    peer.device->ops().disconnect(ep);
}

void Mesh::peer_event(Completion *self, const dtrain_tp_done_t &event) {
    Peer &peer = *static_cast<Peer *>(self);
    if (event.status == DTRAIN_ERR_CANCELED || peer.ep == nullptr) return; // we dropped it
    if (event.status == DTRAIN_OK) {
        peer.up = true;
        peer.attempts = 0;
        peer.failure = DTRAIN_OK;
        return;
    }
    Mesh &mesh = *peer.mesh;
    mesh.drop(peer.member);
    if (event.kind == DTRAIN_TP_CONNECT)
        (void)mesh.attempt_failed(peer, event.status);
    else
        mesh.tell(peer, (std::string(peer.device->name()) + " connection broke").c_str());
}

} // namespace dtrain::engine
