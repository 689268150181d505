// Computes and checks the proofs of the secret.
// SPDX-License-Identifier: Apache-2.0
#include "shm/secret.h"

#include <cstring>

namespace dtrain::shm {

Status prove(const Host &host, Role role, const Transcript &transcript, Mac &out) {
    constexpr char purpose[] = "dtrain shm 1";
    std::array<uint8_t, sizeof purpose + 1 + sizeof transcript> text;
    std::memcpy(text.data(), purpose, sizeof purpose);
    text[sizeof purpose] = static_cast<uint8_t>(role);
    std::memcpy(text.data() + sizeof purpose + 1, &transcript, sizeof transcript);
    out.fill(0);
    Status status = host.sign(text.data(), text.size(), out.data());
    return status == DTRAIN_ERR_UNSUPPORTED ? DTRAIN_OK : status;
}

Status verify(const Host &host, Role role, const Transcript &transcript, const Mac &mac) {
    Mac expected;
    Status status = prove(host, role, transcript, expected);
    if (status != DTRAIN_OK) return status;
    return tp::equal_macs(mac.data(), expected.data()) ? DTRAIN_OK : DTRAIN_ERR_AUTH;
}

} // namespace dtrain::shm
