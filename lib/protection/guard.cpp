// Exchanges keys, and seals and opens records.
// SPDX-License-Identifier: Apache-2.0
#include "protection/guard.h"

#include "base/random.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <endian.h>
#include <initializer_list>
#include <sodium.h>

namespace dtrain::protection {
namespace {

using Part = std::span<const uint8_t>;

Part part(std::string_view text) {
    return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

void hmac(Part key, std::initializer_list<Part> parts, Key &out) {
    static_assert(crypto_auth_hmacsha256_BYTES == sizeof(Key));
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key.data(), key.size());
    for (const Part one : parts) crypto_auth_hmacsha256_update(&state, one.data(), one.size());
    crypto_auth_hmacsha256_final(&state, out.data());
    explicit_bzero(&state, sizeof state);
}

// The keys of one direction, one after the other.
class Direction {
  public:
    Direction(Cipher cipher, Level level, bool seals) : current_(cipher, level, seals) {}
    void start(const Key &master, std::string_view sender) {
        hmac(master, {part(sender)}, chain_);
        next();
    }
    // The key of the record with this number: each number is asked for once, in order.
    CipherKey &key_of(uint64_t number) {
        if (number != 0 && number % records_per_key == 0) next();
        return current_;
    }

  private:
    void next() {
        Key key;
        hmac(chain_, {part("key")}, key);
        current_.set(key);
        hmac(chain_, {part("next")}, chain_);
        explicit_bzero(key.data(), key.size());
    }
    Key chain_;
    CipherKey current_;
};

} // namespace

struct Guard::PrivateKey : InSecretMemory<PrivateKey> {
    Key bytes;
};

struct Guard::Secrets : InSecretMemory<Secrets> {
    Secrets(Cipher cipher, Level level)
        : sending(cipher, level, true), receiving(cipher, level, false) {}
    Direction sending, receiving;
};

Guard::Guard(const Least &demanded) : private_(new PrivateKey) {
    offer_.least = demanded;
    offer_.ciphers = usable_ciphers();
    random_bytes(private_->bytes.data(), private_->bytes.size());
    crypto_scalarmult_curve25519_base(offer_.key.data(), private_->bytes.data());
}

Guard::~Guard() = default;

Status Guard::agree(Role role, std::string_view secret, const Offer &peer, bool inside,
                    std::span<const uint8_t> transcript) {
    const std::unique_ptr<PrivateKey> mine = std::move(private_);
    Level Least::*const where = inside ? &Least::inside : &Least::outside;
    const Level level = std::max(offer_.least.*where, peer.least.*where);
    if (level > Level::encrypted)
        return fail(DTRAIN_ERR_AUTH,
                    "the other side demands a protection that is not known here "
                    "(%u); use the same version of dtrain",
                    unsigned(level));
    if (level == Level::none) return DTRAIN_OK;
    const unsigned common = offer_.ciphers & peer.ciphers;
    if (common == 0)
        return fail(DTRAIN_ERR_AUTH,
                    "%s cannot protect this connection, which the other one demands (option "
                    "protection: %s)",
                    peer.ciphers == 0 ? "the other side" : "this side", name_of(level));
    const auto cipher = Cipher(std::countr_zero(common));
    Key shared, master;
    if (crypto_scalarmult_curve25519(shared.data(), mine->bytes.data(), peer.key.data()) != 0)
        return fail(DTRAIN_ERR_AUTH, "the other side sent a key that is none");
    const uint8_t chosen[] = {uint8_t(level), uint8_t(cipher)};
    hmac(part(secret), {part("dtrain master"), chosen, shared, transcript}, master);
    secrets_ = std::make_unique<Secrets>(cipher, level);
    constexpr std::string_view initiator = "initiator", responder = "responder";
    const bool first = role == Role::initiator;
    secrets_->sending.start(master, first ? initiator : responder);
    secrets_->receiving.start(master, first ? responder : initiator);
    explicit_bzero(shared.data(), shared.size());
    explicit_bzero(master.data(), master.size());
    level_ = level;
    return DTRAIN_OK;
}

size_t Guard::seal(uint8_t *record, size_t length) {
    const uint32_t header = htole32(uint32_t(length));
    memcpy(record, &header, sizeof header);
    const uint64_t number = sealed_++;
    secrets_->sending.key_of(number).seal(number, record + header_bytes, length);
    return length + overhead_bytes;
}

size_t Guard::length_of(const uint8_t *header) {
    uint32_t length;
    memcpy(&length, header, sizeof length);
    length = le32toh(length);
    return length <= max_payload ? length : 0;
}

bool Guard::open(uint8_t *record, size_t length) {
    if (broken_) return false;
    const uint64_t number = opened_++;
    broken_ = !secrets_->receiving.key_of(number).open(number, record + header_bytes, length);
    return !broken_;
}

} // namespace dtrain::protection
