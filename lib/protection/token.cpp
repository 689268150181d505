// Computes and compares the proofs of tokens.
// SPDX-License-Identifier: Apache-2.0
#include "protection/token.h"

#include <sodium.h>

namespace dtrain::protection {

TokenProof prove(std::string_view token, const Occasion &occasion) {
    static constexpr uint8_t label[] = "dtrain table";
    const auto bytes = [](const void *from) { return static_cast<const uint8_t *>(from); };
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, bytes(token.data()), token.size());
    crypto_auth_hmacsha256_update(&state, label, sizeof label);
    crypto_auth_hmacsha256_update(&state, bytes(&occasion.job), sizeof occasion.job);
    crypto_auth_hmacsha256_update(&state, bytes(&occasion.worker), sizeof occasion.worker);
    crypto_auth_hmacsha256_update(&state, bytes(occasion.table.data()), occasion.table.size());
    TokenProof proof;
    crypto_auth_hmacsha256_final(&state, proof.data());
    sodium_memzero(&state, sizeof state);
    return proof;
}

bool is_proof(const uint8_t *proof, std::string_view token, const Occasion &occasion) {
    const TokenProof expected = prove(token, occasion);
    return sodium_memcmp(proof, expected.data(), expected.size()) == 0;
}

} // namespace dtrain::protection
