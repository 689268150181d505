// The handshake that opens every control connection.
// SPDX-License-Identifier: Apache-2.0
//
// Both sides prove that they know the job's secret before either reads anything else from the
// other.
//
//   dialler  -> listener  hello      {magic, flags, meeting, member, nonce, offer}
//   listener -> dialler   answer     {magic, flags, meeting, member, nonce, offer,
//                                     HMAC(secret, "listener" hello answer)}
//   dialler  -> listener  proof      {HMAC(secret, "dialler" hello answer), verdict}
//
// HMAC-SHA256. Both nonces are random and covered by both MACs, so messages cannot be replayed; the
// names of the two roles differ, so they cannot be reflected; the member numbers are covered, too.
// Without a secret the same bytes are sent without MACs and offers. All sizes are fixed. This is
// the three-pass mutual authentication of ISO/IEC 9798-4. The offers (protection/guard.h) make the
// keys that protect all later bytes.
#pragma once
#include "base/secret.h"
#include "protection/guard.h"
#include "wire/limits.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtrain::wire {

using Nonce = std::array<uint8_t, 32>;
using Mac = std::array<uint8_t, 32>;

// What the members of a job share, and the least protection of a control connection that this one
// puts up with.
struct Credentials {
    Secret secret; // may be none
    protection::Level demand = protection::Level::none;
};

class Handshake {
  public:
    enum class Side { dialler, listener };
    static constexpr int32_t anybody = -1;

    // self: own member number. peer: the member to expect (dialler), or anybody. The credentials
    // must outlive the handshake. meeting: tells apart jobs that may use the same port; 0: the port
    // alone identifies the job. Nothing is computed or allocated for a peer that has said nothing.
    Handshake(Side side, const Credentials &own, int32_t self, int32_t peer, const Nonce &nonce,
              uint16_t meeting = 0);
    // With a fresh nonce.
    Handshake(Side side, const Credentials &own, int32_t self, int32_t peer, uint16_t meeting);

    // Takes bytes from `in` (removing those it used) and appends the bytes to send to `out`; must
    // first be called once with empty `in`. DTRAIN_IN_PROGRESS: more bytes are needed. DTRAIN_OK:
    // done; the rest of `in` is frames, or records with frames. DTRAIN_ERR_AUTH, _BUSY (the other
    // side belongs to another job) or _CORRUPT (not a handshake, or from another member): send
    // `out`, then close.
    Status advance(std::vector<uint8_t> &in, std::vector<uint8_t> &out);

    // Whether the other side has said who it is: its hello or answer has arrived, and is one.
    bool introduced() const { return stage_ == Stage::proof || stage_ == Stage::done; }
    // The member that the other side claims to be; proven only after DTRAIN_OK (and with a secret).
    int32_t peer() const { return peer_; }
    // Once, after DTRAIN_OK: what protects the connection from now on; nullptr: nothing.
    std::unique_ptr<protection::Guard> take_guard();

  private:
    // A hello is a head, an answer a head and a MAC.
    static constexpr size_t head_bytes = 84, answer_bytes = head_bytes + sizeof(Mac),
                            proof_bytes = sizeof(Mac) + 1;
    static_assert(answer_bytes <= hello_size);
    using Head = std::array<uint8_t, head_bytes>;

    Status on_hello(std::vector<uint8_t> &out);
    Status on_answer(const uint8_t *mac, std::vector<uint8_t> &out);
    Status on_proof(const uint8_t *proof);
    Status agree();
    Status check_head();
    void begin();
    Head own_head() const;
    Mac mac_of(Side signer) const;

    // An unauthenticated peer makes this process hold it, so it is small.
    const Credentials &own_;
    std::unique_ptr<protection::Guard> guard_; // nullptr: there is no secret, or no hello yet
    Side side_;
    int32_t self_, peer_;
    uint16_t meeting_;
    enum class Stage : uint8_t { start, hello, answer, proof, done } stage_ = Stage::start;
    bool fresh_ = false; // the nonce is still to be made
    Nonce nonce_{};
    Head other_{}; // what the other side has said
};
static_assert(sizeof(Handshake) <= 160);

} // namespace dtrain::wire
