// Starts attempts in their order, and collects the reasons of their failures.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/join/dialling.h"

namespace dtrain::cluster {
namespace {

// Ranks failures by how much they say about the other side, rather than about one address that does
// not lead there.
int weight(Status status) {
    if (status == DTRAIN_ERR_AUTH) return 3;
    if (status == DTRAIN_ERR_PEER) return 2;
    return status == DTRAIN_ERR_NOT_FOUND ? 0 : 1;
}

} // namespace

Dialling::Dialling(std::vector<SocketAddress> candidates, int32_t member)
    : candidates_(std::move(candidates)), member_(member) {
    if (candidates_.size() > max_candidates) candidates_.resize(max_candidates);
}

const SocketAddress *Dialling::next(int64_t now) {
    if (begun_ == candidates_.size() || (under_way_ > 0 && now < next_at_)) return nullptr;
    under_way_++;
    next_at_ = now + patience;
    return &candidates_[begun_++];
}

void Dialling::failed(const Endpoint &where, Status status, const std::string &why) {
    constexpr size_t enough = 300;
    under_way_--;
    failures_++;
    if (status == DTRAIN_ERR_NOT_FOUND) refusals_++;
    if (status == DTRAIN_ERR_AUTH) candidates_.resize(begun_); // the right peer, which refuses
    if (failures_ == 1 || weight(status) > weight(status_)) status_ = status;
    if (text_.size() > enough) return;
    text_ += (text_.empty() ? "" : "; ") + join_endpoint(where.host, where.port) + ": " + why;
}

DialFailed Dialling::outcome(Link link) const {
    return {link, status_, refusals_ == failures_, text_};
}

int64_t Dialling::next_deadline() const {
    return begun_ == candidates_.size() ? INT64_MAX : next_at_;
}

} // namespace dtrain::cluster
