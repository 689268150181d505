// SPDX-License-Identifier: Apache-2.0
#include "engine/mesh.h"

#include <algorithm>

namespace dtrain::engine {

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
        for (auto &device : agent_.devices()) {
            auto theirs =
                std::find_if(members[m].begin(), members[m].end(), [&](const PeerAddress &address) {
                    return address.transport == device->name();
                });
            if (theirs == members[m].end() ||
                device->ops().reachable(device->dev(), theirs->bytes.data(),
                                        theirs->bytes.size()) != DTRAIN_OK)
                continue;
            peer.device = device.get();
            peer.address.assign(theirs->bytes.begin(), theirs->bytes.end());
            break;
        }
        if (peer.device == nullptr)
            return fail(DTRAIN_ERR_TRANSPORT,
                        "no transport reaches member %u; open one that both sides have (option "
                        "transports)",
                        m);
    }
    return DTRAIN_OK;
}

Status Mesh::endpoint(uint32_t member, dtrain_tp_ep_t *&ep) {
    Peer &peer = peers_[member];
    if (peer.ep == nullptr) {
        Status s = peer.device->ops().connect(peer.device->dev(), peer.address.data(),
                                              peer.address.size(), uint64_t(&peer), &peer.ep);
        if (s != DTRAIN_OK) {
            peer.ep = nullptr;
            return s;
        }
    }
    ep = peer.ep;
    return DTRAIN_OK;
}

Status Mesh::send(uint32_t member, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                  Completion *completion) {
    dtrain_tp_ep_t *ep = nullptr;
    Status s = endpoint(member, ep);
    if (s == DTRAIN_OK)
        s = peers_[member].device->ops().send(ep, tag, iov, n, uint64_t(completion));
    if (connection_lost(s) && listener_ != nullptr) {
        std::string text = error_text();
        listener_->peer_broken(member, text.c_str());
    }
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
    peer.device->ops().disconnect(ep);
}

void Mesh::peer_event(Completion *self, const dtrain_tp_done_t &event) {
    Peer &peer = *static_cast<Peer *>(self);
    if (event.kind == DTRAIN_TP_CONNECT && event.status == DTRAIN_OK) return;
    if (event.status == DTRAIN_ERR_CANCELED || peer.ep == nullptr) return; // we dropped it
    char text[error_text_size];
    std::snprintf(text, sizeof text, "%s connection %s", std::string(peer.device->name()).c_str(),
                  event.kind == DTRAIN_TP_CONNECT ? "could not be made" : "broke");
    Mesh &mesh = *peer.mesh;
    mesh.drop(peer.member);
    if (mesh.listener_ != nullptr) mesh.listener_->peer_broken(peer.member, text);
}

} // namespace dtrain::engine
