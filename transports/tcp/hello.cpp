// What two devices say to each other before they trust each other.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/hello.h"

#include <cstring>
#include <endian.h>

namespace dtrain::tcp {
namespace {

constexpr uint32_t protocol_magic = 0x4E525444; // "DTRN" in little-endian
constexpr uint16_t protocol_version = 1;

struct VerdictInfo {
    dtrain_status_t status;
    const char *text;
};
constexpr VerdictInfo verdicts[] = {
    {DTRAIN_OK, "accepted"},
    {DTRAIN_ERR_PEER, "the peer still holds another connection of this device"},
    {DTRAIN_ERR_AUTH, "the two sides have different secrets"},
    {DTRAIN_ERR_AUTH, "only one of the two sides has a secret"},
    {DTRAIN_ERR_VERSION, "the peer speaks another version of the protocol"},
    {DTRAIN_ERR_PEER, "another device listens at this address now"},
};
static_assert(sizeof verdicts / sizeof *verdicts == size_t(Verdict::last) + 1);

} // namespace

dtrain_status_t status_of(Verdict verdict) { return verdicts[size_t(verdict)].status; }
const char *text_of(Verdict verdict) { return verdicts[size_t(verdict)].text; }

Hello Hello::make(const tp::Host &host, const DeviceId &from, const DeviceId &to) {
    Hello hello;
    uint8_t mac[32];
    hello.magic = htole32(protocol_magic);
    hello.version = htole16(protocol_version);
    hello.has_secret = htole16(host.sign("", 0, mac) == DTRAIN_ERR_UNSUPPORTED ? 0 : 1);
    hello.from = from;
    hello.to = to;
    host.random(hello.nonce.data(), hello.nonce.size());
    return hello;
}

bool may_be_hello(const uint8_t *bytes, size_t len) {
    const uint32_t expected = htole32(protocol_magic);
    return !memcmp(bytes, &expected, len < sizeof expected ? len : sizeof expected);
}

Verdict judge(const Hello &own, const Hello &other) {
    if (other.magic != own.magic || other.version != own.version) return Verdict::wrong_version;
    if (other.to != own.from) return Verdict::wrong_device;
    return other.has_secret == own.has_secret ? Verdict::accepted : Verdict::secret_mismatch;
}

dtrain_status_t prove(const tp::Host &host, Role role, const Hello &initiator,
                      const Hello &responder, Proof *proof_p) {
    *proof_p = {};
    if (!initiator.has_secret) return DTRAIN_OK;
    struct {
        char label[16];
        Hello initiator, responder;
    } text{"dtrain tcp init", initiator, responder};
    static_assert(sizeof text == 16 + 2 * sizeof(Hello));
    if (role == Role::responder) memcpy(text.label, "dtrain tcp resp", 16);
    return host.sign(&text, sizeof text, proof_p->data());
}

} // namespace dtrain::tcp
