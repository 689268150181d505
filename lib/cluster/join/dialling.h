// One Dial in progress: several addresses may lead to its destination, some of them may not.
// SPDX-License-Identifier: Apache-2.0
//
// The addresses are tried in their order. An attempt begins when the previous one has failed, or
// has not succeeded for a while; the first that completes the handshake wins (as RFC 8305 does for
// names).
#pragma once
#include "cluster/control/protocol.h"
#include "cluster/host/socket.h"

#include <vector>

namespace dtrain::cluster {

class Dialling {
  public:
    static constexpr size_t max_candidates = 16;
    // Before the next attempt begins while one is under way.
    static constexpr int64_t patience = 250 * ms;

    Dialling(std::vector<SocketAddress> candidates, int32_t member);
    int32_t member() const { return member_; }

    // The candidate whose attempt is due now, or nullptr. It is under way until failed() is called.
    const SocketAddress *next(int64_t now);
    size_t begun() const { return begun_; }
    const SocketAddress &candidate(size_t number) const {
        return candidates_[number - 1];
    } // <= begun
    void failed(const Endpoint &where, Status status, const std::string &why);
    bool over() const { return under_way_ == 0 && begun_ == candidates_.size(); }
    DialFailed outcome(Link link) const; // only once over()
    int64_t next_deadline() const;       // when next() may return the next candidate

  private:
    std::vector<SocketAddress> candidates_;
    int32_t member_;
    size_t begun_ = 0, under_way_ = 0, failures_ = 0, refusals_ = 0;
    int64_t next_at_ = 0;
    Status status_ = DTRAIN_OK; // the most informative failure
    std::string text_;
};

} // namespace dtrain::cluster
