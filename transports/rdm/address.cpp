// The address of a device, in the form that is sent to its peers.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/address.h"

namespace dtrain::rdm {
namespace {

constexpr uint16_t wire_version = 2;

// FNV-1a. It protects against accidents; the secret protects against malice.
uint64_t checksum_of(const Address &address) {
    uint64_t hash = 0xCBF29CE484222325u;
    const auto *bytes = reinterpret_cast<const uint8_t *>(&address);
    for (size_t i = 0; i < offsetof(Address, checksum); i++)
        hash = (hash ^ bytes[i]) * 0x100000001B3u;
    return hash;
}

bool sign(const tp::Host &host, const Address &address, uint8_t mac[32]) {
    return host.sign(&address, offsetof(Address, mac), mac) == DTRAIN_OK;
}

} // namespace

void Address::seal(const tp::Host &host) {
    version = htole16(wire_version);
    has_secret = htole16(tp::has_secret(host) ? 1 : 0);
    checksum = htole64(checksum_of(*this));
    mac = {};
    uint8_t full[32];
    if (has_secret && sign(host, *this, full)) memcpy(mac.data(), full, mac.size());
}

bool Address::decode(const void *bytes, size_t len) {
    if (len != sizeof *this) return false;
    memcpy(static_cast<void *>(this), bytes, len);
    return version == htole16(wire_version) && checksum == htole64(checksum_of(*this)) &&
           le16toh(fabric_len) <= sizeof fabric && !kind[sizeof kind - 1];
}

tp::Verdict Address::judge(const tp::Host &host) const {
    if ((has_secret != 0) != tp::has_secret(host)) return tp::Verdict::secret_mismatch;
    uint8_t own[32] = {}, theirs[32] = {};
    if (has_secret && !sign(host, *this, own)) return tp::Verdict::wrong_proof;
    memset(own + mac.size(), 0, sizeof own - mac.size());
    memcpy(theirs, mac.data(), mac.size());
    return tp::equal_macs(own, theirs) ? tp::Verdict::accepted : tp::Verdict::wrong_proof;
}

} // namespace dtrain::rdm
