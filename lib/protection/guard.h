// The protection of one connection: an exchange of keys, then records.
// SPDX-License-Identifier: Apache-2.0
//
// Both sides put an Offer into their hellos: the least level that each demands, the ciphers that it
// has, and a fresh public key (X25519). The handshake proves, by HMACs under the job's secret, that
// both hellos are from members of the job and unchanged; only then agree() is called. So nobody in
// between can lower a level, exchange a key, or turn a side's own words back to it, and who learns
// the secret later can decrypt nothing that was sent before: the fresh keys are gone by then.
//
//   level  = the higher of the two demands, inside a kernel or outside
//   cipher = the first of Cipher that both sides have
//   master = HMAC(secret, "dtrain master", level, cipher, X25519(fresh keys), transcript)
//   chain  = HMAC(master, role), for each direction
//
// The transcript has both hellos, the initiator's first, and what else must be the same on both
// sides. A direction's records are numbered from 0; every `records_per_key` of them have a key of
// their own, HMAC(chain, "key"), and then chain becomes HMAC(chain, "next"). The number is the
// cipher's nonce and is not sent, so a record that was changed, left out, repeated, moved, or sent
// back to its author does not open. Nor does any record after it.
//
//   record = length of the payload (4 bytes, little-endian), payload, tag (16 bytes)
//
// A wrong length needs no check of its own: the tag covers how many bytes there are.
#pragma once
#include "base/secret_memory.h"
#include "base/status.h"
#include "protection/cipher.h"

#include <memory>
#include <span>
#include <string_view>

namespace dtrain::protection {

inline constexpr size_t header_bytes = 4, overhead_bytes = header_bytes + tag_bytes;
inline constexpr size_t max_payload = 64 << 10; // bytes of a record
// 64 GiB at most, a sixth of what RFC 8446, section 5.5, allows one key of AES-GCM.
inline constexpr uint64_t records_per_key = 1 << 20;

struct Offer { // sent as it is
    Least least{};
    CipherSet ciphers{}; // 0: this side can protect nothing
    uint8_t zero{};
    Key key{}; // public
};
static_assert(sizeof(Offer) == 36 && alignof(Offer) == 1);

enum class Role : uint8_t { initiator, responder };

class Guard {
  public:
    // demanded: what is good enough for this side.
    explicit Guard(const Least &demanded);
    ~Guard();
    Guard(const Guard &) = delete;

    const Offer &offer() const { return offer_; }
    // At most once, after both hellos are proven. inside: the hellos prove that the connection
    // never leaves this kernel. DTRAIN_ERR_AUTH: the peer cannot do what this side demands, or its
    // key is none.
    Status agree(Role role, std::string_view secret, const Offer &peer, bool inside,
                 std::span<const uint8_t> transcript);
    // As agreed. With Level::none there are no records; the next two must not be called then.
    Level level() const { return level_; }

    // Makes a record of the 1 to max_payload bytes at record + header_bytes; there must be room for
    // the tag behind them. Returns the record's length.
    size_t seal(uint8_t *record, size_t length);
    // The payload's length by a record's header; 0: no record has such a header.
    static size_t length_of(const uint8_t *header);
    // Makes the payload of a record, which is whole, readable at record + header_bytes. False: it
    // is not the peer's next one; nor will any other be, so the connection must end.
    [[nodiscard]] bool open(uint8_t *record, size_t length);
    uint64_t opened() const { return opened_; } // records so far

  private:
    struct Secrets;

    Offer offer_;
    Level level_ = Level::none;
    bool broken_ = false; // a record did not open
    uint64_t sealed_ = 0, opened_ = 0;
    struct PrivateKey;
    std::unique_ptr<PrivateKey> private_; // until agree()
    std::unique_ptr<Secrets> secrets_;    // since agree(), unless the level is none
};

} // namespace dtrain::protection
