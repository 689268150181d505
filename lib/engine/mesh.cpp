// Chooses rails, connects them, and describes what went wrong with them.
// SPDX-License-Identifier: Apache-2.0
#include "engine/mesh.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace dtrain::engine {
namespace {

// A machine may be too busy to answer in time; the control plane knows whether the member lives.
constexpr int64_t connect_patience = 15 * second;
constexpr int64_t first_backoff = 10 * ms, longest_backoff = 1 * second;
constexpr uint32_t doublings = 7;
constexpr int64_t short_life = 1 * second; // of a connection
constexpr size_t max_route = 384;          // bytes of text
constexpr int64_t pause_after_failure = 5 * second;

// The pause after so many failures in a row.
int64_t backoff(uint32_t failures) {
    return std::min(first_backoff << std::min(failures - 1, doublings), longest_backoff);
}

std::string violation_on(const std::string &way) {
    return "its connection carried bytes that were changed, left out, repeated or forged (" + way +
           ")";
}

} // namespace

// What the devices have to report of the rails they must report before these are gone: that a
// connection which was being made is given up, or that one had just broken.
Mesh::~Mesh() {
    constexpr int most_polls = 1000; // others' operations go on meanwhile
    agent_.locked([&] {
        for (uint32_t m = 0; m < peers_.size(); m++) drop(m);
        if (peers_.empty()) return; // it was not prepared
        for (auto &device : agent_.devices())
            for (int i = 0; i < most_polls && agent_.poll(*device) > 0; i++) {
            }
    });
}

Status Mesh::prepare(std::span<const std::vector<PeerAddress>> members, Listener *listener) {
    listener_ = listener;
    std::vector<Rails> peers(members.size());
    for (uint32_t m = 0; m < members.size(); m++)
        if (Status s = find_rails(m, members[m], peers[m]); s != DTRAIN_OK) return s;
    peers_ = std::move(peers);
    return DTRAIN_OK;
}

void Mesh::set_slots(uint32_t own, std::span<const uint32_t> members) {
    own_job_ = job_tag(own);
    for (size_t m = 0; m < peers_.size(); m++)
        for (auto &rail : peers_[m]) rail->job = job_tag(members[m]);
}

Status Mesh::find_rails(uint32_t member, std::span<const PeerAddress> addresses, Rails &out) {
    std::string why;
    // skipped: the first network transport that was passed over; not one that works within a host
    // only.
    std::string_view tried, skipped;
    for (auto &device : agent_.devices()) {
        if (device->name() == tried) continue;
        tried = device->name();
        Status s = lay_rails(member, addresses, tried, out);
        if (s != DTRAIN_OK && !out.empty()) // the other side would use this rail
            return fail_within(s, "rail %zu of transport %.*s to member %u", out.size(),
                               int(tried.size()), tried.data(), member);
        if (s != DTRAIN_OK) why = error_text();
        if (!out.empty()) {
            if (!skipped.empty()) tell_fallback(member, tried, skipped, why);
            return DTRAIN_OK;
        }
        if (!device->has(DTRAIN_TP_CAP_WINDOW)) skipped = tried;
    }
    return fail(DTRAIN_ERR_TRANSPORT,
                "no transport reaches member %u (%s); open a transport that both sides have "
                "(option transports), with an address that other hosts can reach (option "
                "listen.address)",
                member, why.empty() ? "none in common" : why.c_str());
}

// Logged once, since the reason is usually the same for all members.
void Mesh::tell_fallback(uint32_t member, std::string_view used, std::string_view skipped,
                         const std::string &why) {
    if (std::exchange(told_fallback_, true)) return;
    agent_.log().write(DTRAIN_LOG_WARN,
                       "member %u is reached over transport %.*s instead of %.*s, which the option "
                       "transports prefers: %s",
                       member, int(used.size()), used.data(), int(skipped.size()), skipped.data(),
                       why.empty() ? "the member has not opened it" : why.c_str());
}

// Pairs this process's devices of the transport with the member's, as far as they can be reached.
Status Mesh::lay_rails(uint32_t member, std::span<const PeerAddress> addresses,
                       std::string_view transport, Rails &out) {
    auto theirs = addresses.begin();
    for (auto &device : agent_.devices()) {
        if (device->name() != transport) continue;
        theirs = std::find_if(theirs, addresses.end(),
                              [&](const PeerAddress &a) { return a.transport == transport; });
        if (theirs == addresses.end()) break;
        Status s =
            device->ops().reachable(device->dev(), theirs->bytes.data(), theirs->bytes.size());
        if (s != DTRAIN_OK) return s;
        Rail &rail = *out.emplace_back(std::make_unique<Rail>());
        rail.done = &rail_event;
        rail.mesh = this;
        rail.member = member;
        rail.number = uint32_t(out.size()) - 1;
        rail.device = device.get();
        rail.address.assign(theirs->bytes.begin(), theirs->bytes.end());
        ++theirs;
    }
    return DTRAIN_OK;
}

Status Mesh::connect(Rail &rail, dtrain_tp_ep_t *&ep) {
    if (rail.ep == nullptr) {
        int64_t now = agent_.clock().now_ns();
        if (now < rail.next_ns) return between_attempts(rail);
        if (rail.attempts++ == 0) rail.first_ns = now;
        Status s = rail.device->ops().connect(rail.device->dev(), rail.address.data(),
                                              rail.address.size(), uint64_t(&rail), &rail.ep);
        if (s != DTRAIN_OK) {
            rail.ep = nullptr;
            return connection_lost(s) ? attempt_failed(rail, s) : s;
        }
    }
    ep = rail.ep;
    return DTRAIN_OK;
}

// BUSY: another attempt will follow. If this process lacks memory or descriptors, it fails with
// that instead, since the next attempt would lack them, too.
Status Mesh::between_attempts(const Rail &rail) const {
    if (!is_own_lack(rail.failure)) return DTRAIN_ERR_BUSY;
    return fail(rail.failure, "%s", trouble(rail).c_str());
}

// BUSY: another attempt will follow.
Status Mesh::attempt_failed(Rail &rail, Status status) {
    rail.failure = status;
    int64_t now = agent_.clock().now_ns();
    bool may_pass = status == DTRAIN_ERR_PEER || status == DTRAIN_ERR_IO;
    bool alive = listener_ == nullptr || listener_->alive(rail.member);
    if (may_pass && alive && now - rail.first_ns < connect_patience) {
        rail.next_ns = now + backoff(rail.attempts);
        return DTRAIN_ERR_BUSY;
    }
    const bool says_why = status == DTRAIN_ERR_AUTH || is_own_lack(status);
    tell(rail, says_why ? status : DTRAIN_ERR_PEER, trouble(rail).c_str());
    rail.next_ns = now + pause_after_failure;
    return status;
}

// The next one may break as soon, as when this process lacks memory for what a connection needs
// once it is up. What is sent again until it succeeds must not make them as fast as both sides can.
void Mesh::connection_broke(Rail &rail) {
    const int64_t now = agent_.clock().now_ns();
    rail.short_lived = now - rail.up_ns < short_life ? rail.short_lived + 1 : 0;
    if (rail.short_lived > 0) rail.next_ns = now + backoff(rail.short_lived);
}

std::string Mesh::name(const Rail &rail) {
    std::string text(rail.device->name());
    if (rail.number > 0) text += " (rail " + std::to_string(rail.number) + ")";
    return text;
}

std::string Mesh::trouble(const Rail &rail) const {
    if (rail.up || rail.failure == DTRAIN_OK) return "";
    char text[128];
    double seconds = double(agent_.clock().now_ns() - rail.first_ns) / double(second);
    std::snprintf(text, sizeof text, "no %s connection in %.1f s (attempts: %u; %s)",
                  name(rail).c_str(), seconds, rail.attempts, status_text(rail.failure));
    return text + route(rail);
}

std::string Mesh::route(const Rail &rail) {
    const dtrain_tp_ops_t &ops = rail.device->ops();
    char text[max_route] = "";
    if (ops.route == nullptr || ops.route(rail.device->dev(), rail.address.data(),
                                          rail.address.size(), text, sizeof text) != DTRAIN_OK)
        return "";
    text[sizeof text - 1] = 0;
    return std::string(" ") + text;
}

std::string Mesh::trouble(uint32_t member) const {
    std::string text;
    for (const auto &rail : peers_[member])
        if (text.empty()) text = trouble(*rail);
    return text;
}

std::string Mesh::trouble(uint32_t member, uint32_t rail) const {
    return trouble(*peers_[member][rail]);
}

std::string Mesh::way(uint32_t member, uint32_t number) const {
    const Rail &rail = *peers_[member][number];
    return name(rail) + route(rail);
}

std::string Mesh::violation(uint32_t member, uint32_t number) const {
    return violation_on(way(member, number));
}

bool Mesh::is_up(uint32_t member, uint32_t number) {
    Rail &rail = *peers_[member][number];
    dtrain_tp_ep_t *ep = nullptr;
    return connect(rail, ep) == DTRAIN_OK && rail.up;
}

bool Mesh::is_connected(uint32_t member) const {
    return std::ranges::any_of(peers_[member],
                               [](const auto &rail) { return rail->ep != nullptr; });
}

void Mesh::leave_out(uint32_t number) {
    for (Rails &rails : peers_) {
        auto at = std::find_if(rails.begin(), rails.end(),
                               [number](const auto &rail) { return rail->number == number; });
        if (at == rails.end()) continue;
        disconnect(**at);
        left_out_.push_back(std::move(*at)); // kept, since its cancellation may still be reported
        rails.erase(at);
    }
}

void Mesh::tell(const Rail &rail, Status status, const char *text) {
    if (listener_ != nullptr) listener_->peer_broken(rail.member, status, text);
}

Status Mesh::send(uint32_t member, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                  Completion *completion, uint32_t number) {
    Rail &rail = *peers_[member][number];
    dtrain_tp_ep_t *ep = nullptr;
    Status s = connect(rail, ep);
    if (s != DTRAIN_OK) return s;
    if (!rail.up) return DTRAIN_ERR_BUSY;
    s = rail.device->ops().send(ep, tag | rail.job, iov, n, uint64_t(completion));
    if (connection_lost(s)) tell(rail, DTRAIN_ERR_PEER, std::string(error_text()).c_str());
    return s;
}

Status Mesh::recv(uint32_t member, uint64_t tag, uint64_t mask, const dtrain_tp_iov_t *iov,
                  uint32_t n, Completion *completion, uint32_t rail) {
    transport::Device &device = *peers_[member][rail]->device;
    return device.ops().recv(device.dev(), inbound(tag), mask, iov, n, uint64_t(completion));
}

void Mesh::cancel(uint32_t member, Completion *completion, uint32_t rail) {
    transport::Device &device = *peers_[member][rail]->device;
    device.ops().cancel(device.dev(), uint64_t(completion));
}

void Mesh::withdraw(uint32_t member, Completion *completion, uint32_t number) {
    Rail &rail = *peers_[member][number];
    rail.device->withdraw(uint64_t(completion));
    if (!rail.device->can_withdraw()) disconnect(rail);
}

void Mesh::purge(uint64_t tag, uint64_t mask) {
    for (auto &device : agent_.devices())
        device->ops().purge(device->dev(), inbound(tag), mask | job_mask);
}

void Mesh::drop(uint32_t member) {
    if (member >= peers_.size()) return; // it was not prepared
    for (auto &rail : peers_[member]) disconnect(*rail);
}

void Mesh::disconnect(Rail &rail) {
    if (rail.ep == nullptr) return;
    dtrain_tp_ep_t *ep = rail.ep;
    rail.ep = nullptr;
    rail.up = false;
    rail.device->ops().disconnect(ep);
}

void Mesh::rail_event(Completion *self, const dtrain_tp_done_t &event) {
    Rail &rail = *static_cast<Rail *>(self);
    if (event.status == DTRAIN_ERR_CANCELED || rail.ep == nullptr) return; // this process closed it
    if (event.status == DTRAIN_OK) {
        rail.up = true;
        rail.up_ns = rail.mesh->agent_.clock().now_ns();
        rail.attempts = 0;
        rail.failure = DTRAIN_OK;
        return;
    }
    Mesh &mesh = *rail.mesh;
    mesh.disconnect(rail);
    if (event.kind == DTRAIN_TP_CONNECT) {
        (void)mesh.attempt_failed(rail, event.status);
        return;
    }
    mesh.connection_broke(rail);
    if (event.status == DTRAIN_ERR_CORRUPT)
        mesh.tell(rail, event.status, violation_on(name(rail) + route(rail)).c_str());
    else
        mesh.tell(rail, is_own_lack(event.status) ? event.status : DTRAIN_ERR_PEER,
                  (name(rail) + " connection broke").c_str());
}

} // namespace dtrain::engine
