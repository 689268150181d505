// One Dial on its way: several addresses may lead to where it goes, and some of them nowhere.
// SPDX-License-Identifier: Apache-2.0
//
// They are tried in their order. Each begins when the one before has failed, or has not succeeded
// for a while; the first that gets through the handshake wins. (As RFC 8305 does for names.)
#pragma once
#include "cluster/control/protocol.h"
#include "cluster/host/socket.h"

#include <vector>

namespace dtrain::cluster {

class Dialling {
  public:
    static constexpr size_t max_candidates = 16;
    static constexpr int64_t patience = 250 * ms; // with a candidate, before the next begins, too

    Dialling(std::vector<SocketAddress> candidates, int32_t member);
    int32_t member() const { return member_; }

    // The candidate that is to begin now, nullptr when none is. It is under way until failed().
    const SocketAddress *next(int64_t now);
    size_t begun() const { return begun_; }
    void failed(const Endpoint &where, Status status, const std::string &why);
    bool over() const { return under_way_ == 0 && begun_ == candidates_.size(); }
    DialFailed outcome(Link link) const; // once over
    int64_t next_deadline() const;       // of next()

  private:
    std::vector<SocketAddress> candidates_;
    int32_t member_;
    size_t begun_ = 0, under_way_ = 0, failures_ = 0, refusals_ = 0;
    int64_t next_at_ = 0;
    Status status_ = DTRAIN_OK; // the failure that says most
    std::string text_;
};

} // namespace dtrain::cluster
