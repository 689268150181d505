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
    // alone identifies the job.
    Handshake(Side side, const Credentials &own, int32_t self, int32_t peer, const Nonce &nonce,
              uint16_t meeting = 0);

    // Takes bytes from `in` (removing those it used) and appends the bytes to send to `out`; must
    // first be called once with empty `in`. DTRAIN_IN_PROGRESS: more bytes are needed. DTRAIN_OK:
    // done; the rest of `in` is frames, or records with frames. DTRAIN_ERR_AUTH, _BUSY (the other
    // side belongs to another job) or _CORRUPT (not a handshake, or from another member): send
    // `out`, then close.
    Status advance(std::vector<uint8_t> &in, std::vector<uint8_t> &out);

    // The member that the other side claims to be; proven only after DTRAIN_OK (and with a secret).
    int32_t peer() const { return peer_; }
    // Once, after DTRAIN_OK: what protects the connection from now on; nullptr: nothing.
    std::unique_ptr<protection::Guard> take_guard();

  private:
    static constexpr size_t hello_bytes = 84, answer_bytes = 116, proof_bytes = 33;
    static_assert(hello_bytes <= hello_size && answer_bytes <= hello_size);

    Status on_hello(std::vector<uint8_t> &out);
    Status on_answer(std::vector<uint8_t> &out);
    Status on_proof();
    Status agree();
    Status check_head(const uint8_t *head);
    void write_head(uint8_t *head) const;
    Mac mac_of(Side signer) const;

    const Credentials &own_;
    std::unique_ptr<protection::Guard> guard_; // nullptr: there is no secret
    Side side_;
    int32_t self_, peer_;
    uint16_t meeting_;
    Nonce nonce_;
    std::array<uint8_t, hello_bytes> hello_{};
    std::array<uint8_t, answer_bytes> answer_{};
    std::array<uint8_t, proof_bytes> proof_{};
    enum class Stage { start, hello, answer, proof, done } stage_ = Stage::start;
};

} // namespace dtrain::wire
