// What two devices say to each other before they trust each other. Pure: no socket, no clock.
//
//   initiator                         responder
//   Hello                       ->
//                               <-    Verdict, and if it is `accepted`: Hello, Proof
//   Proof                       ->
//                               <-    Verdict
//
// A proof is the HMAC of role and both hellos under the job's secret: it covers both fresh nonces,
// and one role's proof is useless in the other's place. Without a secret proofs are zero.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tcp/address.h"

namespace dtrain::tcp {

using Proof = std::array<uint8_t, 32>;

enum class Role : uint8_t { initiator, responder };

enum class Verdict : uint32_t { // on the wire, little-endian
    accepted = 0,
    duplicate = 1, // another connection of the same two devices is on its way or there
    wrong_proof = 2,
    secret_mismatch = 3, // one side has a secret, the other has none
    wrong_version = 4,
    wrong_device = 5, // whoever listened here before is gone
    last = wrong_device
};
dtrain_status_t status_of(Verdict verdict);
const char *text_of(Verdict verdict);

struct Hello { // on the wire as it is, integers little-endian
    uint32_t magic = 0;
    uint16_t version = 0;
    uint16_t has_secret = 0;
    DeviceId from{}, to{};
    std::array<uint8_t, 16> nonce{};

    static Hello make(const tp::Host &host, const DeviceId &from, const DeviceId &to);
};
static_assert(sizeof(Hello) == 56);

// False as soon as the first len bytes cannot be the beginning of a hello.
bool may_be_hello(const uint8_t *bytes, size_t len);
// What `own` side thinks of the other side's hello.
Verdict judge(const Hello &own, const Hello &other);
// The proof of `role`; zero without a secret.
dtrain_status_t prove(const tp::Host &host, Role role, const Hello &initiator,
                      const Hello &responder, Proof *proof_p);

} // namespace dtrain::tcp
