// The ciphers of libsodium.
// SPDX-License-Identifier: Apache-2.0
#include "protection/cipher.h"

#include "protection/libcrypto.h"

#include <cstring>
#include <endian.h>
#include <sodium.h>

namespace dtrain::protection {
namespace {

static_assert(sizeof(crypto_aead_aes256gcm_state) == 512);
static_assert(crypto_aead_aes256gcm_ABYTES == tag_bytes &&
              crypto_aead_chacha20poly1305_ietf_ABYTES == tag_bytes);
static_assert(crypto_aead_aes256gcm_KEYBYTES == sizeof(Key) &&
              crypto_aead_chacha20poly1305_ietf_KEYBYTES == sizeof(Key));

// The number in the last eight bytes: keys are fresh, so no other part of a nonce has to differ.
struct Nonce {
    explicit Nonce(uint64_t number) {
        const uint64_t last = htobe64(number);
        memcpy(bytes + sizeof bytes - sizeof last, &last, sizeof last);
    }
    uint8_t bytes[12] = {};
};
static_assert(sizeof(Nonce) == crypto_aead_aes256gcm_NPUBBYTES);
static_assert(sizeof(Nonce) == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);

const auto *aes(const uint8_t *schedule) {
    return reinterpret_cast<const crypto_aead_aes256gcm_state *>(schedule);
}

} // namespace

CipherSet usable_ciphers() {
    // Finds out what the processor has; thread-safe, and does it once.
    static const bool ready = sodium_init() >= 0;
    CipherSet set = bit_of(Cipher::chacha20_poly1305);
    if (ready && crypto_aead_aes256gcm_is_available() != 0) set |= bit_of(Cipher::aes256_gcm);
    return set;
}

const char *name_of(Cipher cipher) {
    return cipher == Cipher::aes256_gcm ? "AES-256-GCM" : "ChaCha20-Poly1305";
}

const char *name_of(Level level) {
    static constexpr const char *names[] = {"none", "integrity", "encrypted"};
    return names[size_t(level)];
}

CipherKey::CipherKey(Cipher cipher, Level level, bool seals)
    : cipher_(cipher), level_(level), seals_(seals), has_libcrypto_(cipher == Cipher::aes256_gcm) {}

CipherKey::~CipherKey() = default;

void CipherKey::set(const Key &key) {
    key_ = key;
    libcrypto_ready_ = false;
    if (cipher_ == Cipher::aes256_gcm)
        crypto_aead_aes256gcm_beforenm(reinterpret_cast<crypto_aead_aes256gcm_state *>(schedule_),
                                       key.data());
}

bool CipherKey::prepare_libcrypto(size_t length) {
    if (!has_libcrypto_) return false;
    if (carried_ < worth_libcrypto) {
        carried_ += length;
        return false;
    }
    if (libcrypto_ == nullptr) libcrypto_ = LibcryptoKey::make();
    has_libcrypto_ = libcrypto_ != nullptr && libcrypto_->set(key_, seals_);
    return libcrypto_ready_ = has_libcrypto_;
}

void CipherKey::seal(uint64_t number, uint8_t *bytes, size_t length) {
    const Nonce nonce(number);
    uint8_t *const tag = bytes + length;
    const bool encrypts = level_ == Level::encrypted;
    if (is_for_libcrypto(length)) {
        // It does not fail; if it did, the bytes would be neither, and no peer may believe them.
        if (!libcrypto_->seal(nonce.bytes, bytes, length, encrypts)) memset(tag, 0, tag_bytes);
        return;
    }
    const uint8_t *const data = encrypts ? nullptr : bytes; // associated
    const size_t data_length = encrypts ? 0 : length, text_length = length - data_length;
    if (cipher_ == Cipher::aes256_gcm)
        crypto_aead_aes256gcm_encrypt_detached_afternm(bytes, tag, nullptr, bytes, text_length,
                                                       data, data_length, nullptr, nonce.bytes,
                                                       aes(schedule_));
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(bytes, tag, nullptr, bytes, text_length,
                                                           data, data_length, nullptr, nonce.bytes,
                                                           key_.data());
}

bool CipherKey::open(uint64_t number, uint8_t *bytes, size_t length) {
    const Nonce nonce(number);
    const uint8_t *const tag = bytes + length;
    const bool encrypts = level_ == Level::encrypted;
    if (is_for_libcrypto(length)) return libcrypto_->open(nonce.bytes, bytes, length, encrypts);
    const uint8_t *const data = encrypts ? nullptr : bytes;
    const size_t data_length = encrypts ? 0 : length, text_length = length - data_length;
    if (cipher_ == Cipher::aes256_gcm)
        return crypto_aead_aes256gcm_decrypt_detached_afternm(bytes, nullptr, bytes, text_length,
                                                              tag, data, data_length, nonce.bytes,
                                                              aes(schedule_)) == 0;
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(bytes, nullptr, bytes, text_length,
                                                              tag, data, data_length, nonce.bytes,
                                                              key_.data()) == 0;
}

} // namespace dtrain::protection
