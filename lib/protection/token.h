// A token, which a process proves to know without showing it.
// SPDX-License-Identifier: Apache-2.0
//
//   proof = HMAC-SHA256(token, "dtrain table" job worker table)
//
// The job's number is random, so a proof serves one worker for one table of one job, and nobody
// else.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace dtrain::protection {

using TokenProof = std::array<uint8_t, 32>;

struct Occasion {
    uint64_t job = 0;
    uint32_t worker = 0;
    std::string_view table;
};
TokenProof prove(std::string_view token, const Occasion &occasion);
// In a time that says nothing about the token.
bool is_proof(const uint8_t *proof, std::string_view token, const Occasion &occasion);

} // namespace dtrain::protection
