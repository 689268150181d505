// The routes to the members of a job: which transport reaches each, and connections made at first
// use.
// SPDX-License-Identifier: Apache-2.0
//
// A transport may have several devices (network cards). Then as many rails lead to a member as both
// sides have devices: the first device of one side is paired with the first of the other, and so
// on. Small messages take the first rail. A sender spreads large ones over the rails, and the
// receiver knows how. So either all members leave a rail out, or none does.
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

// All but the constructor and prepare() must be called under the agent's lock.
class Mesh {
  public:
    class Listener {
      public:
        // The connection to this member broke (DTRAIN_ERR_PEER), carried what the member did not
        // send (DTRAIN_ERR_CORRUPT), or could not be made in repeated attempts; the text says how.
        // is_own_lack(status): that is this process's fault.
        // Operations pending on it, except receives, complete with an error themselves.
        virtual void peer_broken(uint32_t member, Status status, const char *text) = 0;
        // Whether another attempt to connect to the member makes sense.
        virtual bool alive(uint32_t /*member*/) { return true; }

      protected:
        ~Listener() = default;
    };

    explicit Mesh(Agent &agent) : agent_(agent) {}
    ~Mesh(); // disconnects

    // Chooses the transport to each member, in the members' order: of the transports that both
    // sides opened, the first of ours (option "transports" names the best first) that can reach the
    // member.
    Status prepare(std::span<const std::vector<PeerAddress>> members, Listener *listener);
    // The job's number in tags: in this process, and in those of the members.
    void set_slots(uint32_t own, std::span<const uint32_t> members);

    // Buffers must live until `completion` is done. BUSY: nothing was sent; try again after a
    // round. It is also BUSY until there is a connection, so attempts to connect that fail lose
    // nothing.
    Status send(uint32_t member, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                Completion *completion, uint32_t rail = 0);
    // Receives from `member`, or (if the tag allows any source) from any member with the same
    // transport.
    Status recv(uint32_t member, uint64_t tag, uint64_t mask, const dtrain_tp_iov_t *iov,
                uint32_t n, Completion *completion, uint32_t rail = 0);
    // Requests an early end of a receive that has not matched yet.
    void cancel(uint32_t member, Completion *completion, uint32_t rail = 0);
    // Ends what is pending with this completion, whatever the member does: it is done within 50 ms,
    // and its memory is not accessed afterwards. At worst the connection is closed for that.
    void withdraw(uint32_t member, Completion *completion, uint32_t rail = 0);
    // Discards what this job has received with such tags and nobody has taken, on all transports.
    void purge(uint64_t tag, uint64_t mask);
    // The tag by which messages of this job arrive.
    uint64_t inbound(uint64_t tag) const { return tag | own_job_; }
    // Closes its connections; the next send makes a new one.
    void drop(uint32_t member);

    uint32_t rails(uint32_t member) const { return uint32_t(peers_[member].size()); }
    // The device of the first rail.
    transport::Device *device(uint32_t member) const { return peers_[member][0]->device; }
    // The endpoint of the first rail. Connects if needed, and the connection may still be in
    // progress. BUSY: the next attempt is not due yet.
    Status endpoint(uint32_t member, dtrain_tp_ep_t *&ep) {
        return connect(*peers_[member][0], ep);
    }
    // Whether the peer has answered over this rail; connects if needed.
    bool is_up(uint32_t member, uint32_t rail);
    bool is_connected(uint32_t member) const; // or connecting, over some rail
    // Stops using this rail to all members. Must not be the first rail.
    void leave_out(uint32_t rail);
    // "no tcp connection in 3.2 s (attempts: 8; ...)"; "" if no attempt has failed.
    std::string trouble(uint32_t member) const;
    std::string trouble(uint32_t member, uint32_t rail) const;
    // "ofi (rail 1) from card rxe1 to ..."
    std::string way(uint32_t member, uint32_t rail) const;
    // "its connection carried ... (tcp from 10.0.0.4 (eth0) to ...)", for DTRAIN_ERR_CORRUPT.
    std::string violation(uint32_t member, uint32_t rail) const;
    MessageOrder &order() { return order_; }

  private:
    struct Rail : Completion {
        Mesh *mesh = nullptr;
        uint32_t member = 0, number = 0;
        transport::Device *device = nullptr;
        std::vector<uint8_t> address;
        uint64_t job = 0; // in the tags of messages to the member
        dtrain_tp_ep_t *ep = nullptr;
        bool up = false;                   // ep is connected
        uint32_t attempts = 0;             // since the last connection
        int64_t first_ns = 0, next_ns = 0; // times of the first and next attempt
        int64_t up_ns = 0;                 // time of the last connection
        uint32_t short_lived = 0;          // connections in a row that soon broke
        Status failure = DTRAIN_OK;        // result of the last attempt
    };
    using Rails = std::vector<std::unique_ptr<Rail>>; // they are completions, so they must not move
    Status find_rails(uint32_t member, std::span<const PeerAddress> addresses, Rails &out);
    Status lay_rails(uint32_t member, std::span<const PeerAddress> addresses,
                     std::string_view transport, Rails &out);
    void tell_fallback(uint32_t member, std::string_view used, std::string_view skipped,
                       const std::string &why);
    Status connect(Rail &rail, dtrain_tp_ep_t *&ep);
    void disconnect(Rail &rail);
    Status between_attempts(const Rail &rail) const;
    Status attempt_failed(Rail &rail, Status status);
    void connection_broke(Rail &rail);
    std::string trouble(const Rail &rail) const;
    void tell(const Rail &rail, Status status, const char *text);
    static std::string name(const Rail &rail); // "tcp", "tcp (rail 1)"
    // " from 10.0.0.4 (eth0) to ..."; "" if the transport does not tell.
    static std::string route(const Rail &rail);
    static void rail_event(Completion *self, const dtrain_tp_done_t &event);

    Agent &agent_;
    Listener *listener_ = nullptr;
    uint64_t own_job_ = 0;
    std::vector<Rails> peers_; // by member; each has at least one rail
    Rails left_out_;
    bool told_fallback_ = false;
    MessageOrder order_;
};

} // namespace dtrain::engine
