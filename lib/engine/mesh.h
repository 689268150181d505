// The ways to the members of a job: which transport, and a connection made at first use.
// SPDX-License-Identifier: Apache-2.0
//
// A transport may have several devices (network cards): then as many rails lead to a member as both
// sides have, the first device of one to the first of the other and so on. Small messages take the
// first rail; who sends large ones spreads them, and their receiver knows how. So all members leave
// a rail out, or none does.
#pragma once
#include "engine/agent.h"
#include "engine/message_order.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::engine {

struct PeerAddress {
    std::string_view transport; // "tcp"
    std::span<const uint8_t> bytes;
};

// All but the constructor and prepare() under the agent's lock.
class Mesh {
  public:
    class Listener {
      public:
        // The connection to this member broke, or could not be made though it was tried again and
        // again; the text says how. What was pending on it completes with an error of its own,
        // receives excepted.
        virtual void peer_broken(uint32_t member, const char *text) = 0;
        // Whether it is worth trying again to connect to it.
        virtual bool alive(uint32_t /*member*/) { return true; }

      protected:
        ~Listener() = default;
    };

    explicit Mesh(Agent &agent) : agent_(agent) {}
    ~Mesh(); // disconnects

    // Chooses the way to each member, in their order: of the transports that both sides opened, the
    // first of ours (option "transports" names the best first) that can reach it.
    Status prepare(std::span<const std::vector<PeerAddress>> members, Listener *listener);

    // Buffers must live until `completion` is done. BUSY: nothing happened, try after a round; so
    // it is until there is a connection, so nothing is lost with attempts to connect that fail.
    Status send(uint32_t member, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                Completion *completion, uint32_t rail = 0);
    // From `member`, or from any (the tag tells) of those who share its transport.
    Status recv(uint32_t member, uint64_t tag, uint64_t mask, const dtrain_tp_iov_t *iov,
                uint32_t n, Completion *completion, uint32_t rail = 0);
    // Asks for an early end of a receive that has not matched.
    void cancel(uint32_t member, Completion *completion, uint32_t rail = 0);
    // Ends what is pending with this completion, whatever the member does: within 50 ms it is done,
    // and from then on nobody touches its memory. At worst that costs the connection.
    void withdraw(uint32_t member, Completion *completion, uint32_t rail = 0);
    void purge(uint64_t tag, uint64_t mask); // on all transports
    void drop(uint32_t member);              // the connections; the next send makes a new one

    uint32_t rails(uint32_t member) const { return uint32_t(peers_[member].size()); }
    // Of the first rail.
    transport::Device *device(uint32_t member) const { return peers_[member][0]->device; }
    // Of the first rail. Connects if need be, and may then be on the way. BUSY: the next attempt is
    // not due yet.
    Status endpoint(uint32_t member, dtrain_tp_ep_t *&ep) {
        return connect(*peers_[member][0], ep);
    }
    // Whether the peer has answered over this rail; connects if need be.
    bool is_up(uint32_t member, uint32_t rail);
    bool is_connected(uint32_t member) const; // or about to be, over some rail
    // To no member it is used any more; not the first.
    void leave_out(uint32_t rail);
    // "no tcp connection in 3.2 s (attempts: 8; ...)"; "" when none has failed.
    std::string trouble(uint32_t member) const;
    std::string trouble(uint32_t member, uint32_t rail) const;
    // "ofi (rail 1) from card rxe1 to ..."
    std::string way(uint32_t member, uint32_t rail) const;
    MessageOrder &order() { return order_; }

  private:
    struct Rail : Completion {
        Mesh *mesh = nullptr;
        uint32_t member = 0, number = 0;
        transport::Device *device = nullptr;
        std::vector<uint8_t> address;
        dtrain_tp_ep_t *ep = nullptr;
        bool up = false;                   // ep is connected
        uint32_t attempts = 0;             // since the last connection
        int64_t first_ns = 0, next_ns = 0; // of the attempts
        Status failure = DTRAIN_OK;        // of the last one
    };
    using Rails = std::vector<std::unique_ptr<Rail>>; // completions, which stay where they are
    Status find_rails(uint32_t member, std::span<const PeerAddress> addresses, Rails &out);
    Status lay_rails(uint32_t member, std::span<const PeerAddress> addresses,
                     std::string_view transport, Rails &out);
    void tell_fallback(uint32_t member, std::string_view used, std::string_view skipped,
                       const std::string &why);
    Status connect(Rail &rail, dtrain_tp_ep_t *&ep);
    void disconnect(Rail &rail);
    Status between_attempts(const Rail &rail) const;
    Status attempt_failed(Rail &rail, Status status);
    std::string trouble(const Rail &rail) const;
    void tell(const Rail &rail, const char *text);
    static std::string name(const Rail &rail); // "tcp", "tcp (rail 1)"
    // " from 10.0.0.4 (eth0) to ..."; "" where the transport does not tell.
    static std::string route(const Rail &rail);
    static void rail_event(Completion *self, const dtrain_tp_done_t &event);

    Agent &agent_;
    Listener *listener_ = nullptr;
    std::vector<Rails> peers_; // by member; at least one rail each
    Rails left_out_;
    bool told_fallback_ = false;
    MessageOrder order_;
};

} // namespace dtrain::engine
