// The messages that two devices exchange before they trust each other. Pure: no network, no clock.
//
//   initiator                         responder
//   Hello                       ->
//                               <-    Verdict, and if it is `accepted`: Hello, Proof
//   Proof                       ->
//                               <-    Verdict, and if it is `accepted`:
//   Confirmation (4 zero bytes) ->
//
// Until the confirmation, a responder does not count on the connection: the initiator may have
// given it up long ago if the responder was slow to answer. A responder that has accepted waits for
// it without a deadline if the core knows the initiator, which counts on the connection once it has
// confirmed, however long it is stopped before.
//
// A proof is the HMAC of transport, role and both hellos under the job's secret. It covers both
// fresh nonces, and a proof of one role cannot be used for the other. Without a secret proofs are
// zero. Hellos carry offers (guard.h), from which both sides make keys after the proofs.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "guard.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <endian.h>

namespace dtrain::tp {

using DeviceId = std::array<uint8_t, 16>;    // random, one per opened device
inline uint64_t tag_of(const DeviceId &id) { // for TagTable
    uint64_t tag;
    memcpy(&tag, id.data(), sizeof tag);
    return tag;
}
using Proof = std::array<uint8_t, 32>;

enum class Role : uint8_t { initiator, responder };

enum class Verdict : uint32_t { // on the wire, little-endian
    accepted = 0,
    duplicate = 1, // another connection of the same two devices exists or is being made
    wrong_proof = 2,
    secret_mismatch = 3, // one side has a secret, the other has none
    wrong_version = 4,
    wrong_device = 5, // the device that listened here before is gone
    unprotected = 6,  // one side demands a protection that the other cannot do
    last = unprotected
};
struct VerdictInfo {
    dtrain_status_t status;
    const char *text;
};
inline constexpr VerdictInfo verdicts[] = {
    {DTRAIN_OK, "accepted"},
    {DTRAIN_ERR_PEER, "the peer still holds another connection of this device"},
    {DTRAIN_ERR_AUTH, "the two sides have different secrets"},
    {DTRAIN_ERR_AUTH, "only one of the two sides has a secret"},
    {DTRAIN_ERR_VERSION, "the peer uses another version of the protocol"},
    {DTRAIN_ERR_PEER, "another device listens at this address now"},
    {DTRAIN_ERR_AUTH, "one of the two sides cannot protect the connection as the other demands "
                      "(option protection)"},
};
static_assert(sizeof verdicts / sizeof *verdicts == size_t(Verdict::last) + 1);
inline dtrain_status_t status_of(Verdict verdict) { return verdicts[size_t(verdict)].status; }
inline const char *text_of(Verdict verdict) { return verdicts[size_t(verdict)].text; }

inline bool has_secret(const Host &host) {
    uint8_t mac[32];
    return host.sign("", 0, mac) != DTRAIN_ERR_UNSUPPORTED;
}

// What a connection looks like from one end, under the job's secret: the kernel, its network, and
// the addresses of both ends. Equal at both ends only if nothing is in between; zero: unknown.
using Path = std::array<uint8_t, 8>;

struct Hello {                                             // sent as it is; integers little-endian
    static constexpr uint32_t protocol_magic = 0x4E525444; // "DTRN" in little-endian
    static constexpr uint16_t protocol_version = 3;

    uint32_t magic = 0;
    uint16_t version = 0;
    uint16_t has_secret = 0;
    DeviceId from{}, to{};
    std::array<uint8_t, 16> nonce{};
    Offer offer{};
    Path path{};

    static Hello make(const Host &host, const DeviceId &from, const DeviceId &to) {
        Hello hello;
        hello.magic = htole32(protocol_magic);
        hello.version = htole16(protocol_version);
        hello.has_secret = htole16(tp::has_secret(host) ? 1 : 0);
        hello.from = from;
        hello.to = to;
        host.random(hello.nonce.data(), hello.nonce.size());
        return hello;
    }
};
static_assert(sizeof(Hello) == 100);

// False as soon as the first len bytes cannot be the start of a hello.
inline bool may_be_hello(const uint8_t *bytes, size_t len) {
    const uint32_t expected = htole32(Hello::protocol_magic);
    return !memcmp(bytes, &expected, len < sizeof expected ? len : sizeof expected);
}

// The verdict of the `own` side on the other side's hello.
inline Verdict judge(const Hello &own, const Hello &other) {
    if (other.magic != own.magic || other.version != own.version) return Verdict::wrong_version;
    if (other.to != own.from) return Verdict::wrong_device;
    return other.has_secret == own.has_secret ? Verdict::accepted : Verdict::secret_mismatch;
}

// What both sides must have heard alike.
struct Transcript {
    char label[16] = "";
    Hello initiator, responder;

    // what: "init" and "resp" for proofs
    Transcript(const char *transport, const char *what, const Hello &first, const Hello &second)
        : initiator(first), responder(second) {
        snprintf(label, sizeof label, "dtrain %s %s", transport, what);
    }
};
static_assert(sizeof(Transcript) == 16 + 2 * sizeof(Hello));

// The proof of `role` in `transport` ("tcp"); zero without a secret.
inline dtrain_status_t prove(const Host &host, const char *transport, Role role,
                             const Hello &initiator, const Hello &responder, Proof *proof_p) {
    *proof_p = {};
    if (!initiator.has_secret) return DTRAIN_OK;
    const Transcript text(transport, role == Role::initiator ? "init" : "resp", initiator,
                          responder);
    return host.sign(&text, sizeof text, proof_p->data());
}

// The proof of the side `own`, and the one that it must get. False: signing failed.
inline bool prove_both(const Host &host, const char *transport, Role role, const Hello &own,
                       const Hello &other, Proof *proof_p, Proof *expected_p) {
    const bool first = role == Role::initiator;
    const Hello &initiator = first ? own : other, &responder = first ? other : own;
    return prove(host, transport, Role::initiator, initiator, responder,
                 first ? proof_p : expected_p) == DTRAIN_OK &&
           prove(host, transport, Role::responder, initiator, responder,
                 first ? expected_p : proof_p) == DTRAIN_OK;
}

// Makes the keys, after both proofs.
inline Verdict protect(Guard &guard, const char *transport, Role role, const Hello &own,
                       const Hello &other) {
    const bool first = role == Role::initiator;
    const Transcript text(transport, "keys", first ? own : other, first ? other : own);
    const bool inside = own.path != Path{} && own.path == other.path;
    const uint32_t place =
        (first ? uint32_t{DTRAIN_TP_INITIATOR} : 0u) | (inside ? uint32_t{DTRAIN_TP_INSIDE} : 0u);
    return guard.agree(place, other.offer, &text, sizeof text) == DTRAIN_OK ? Verdict::accepted
                                                                            : Verdict::unprotected;
}

} // namespace dtrain::tp
