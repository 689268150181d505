// The ciphers that protect records. All code that encrypts is a library's.
// SPDX-License-Identifier: Apache-2.0
//
// Each is an AEAD with a key of 32 bytes, a nonce of 12 and a tag of 16. For the level `integrity`
// all bytes are associated data: the tag is computed as for a message that is not encrypted, which
// costs a third of encryption, and needs no other key or algorithm.
//
// Short records of AES are libsodium's, and so are long ones unless there is OpenSSL's libcrypto,
// which begins more slowly and is then faster. The bytes are the same. A process is slow to load
// it (docs/PERFORMANCE.md, "Starting many ranks"), so only a connection that has carried much does.
#pragma once
#include "protection/level.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dtrain::protection {

enum class Cipher : uint8_t { aes256_gcm, chacha20_poly1305 }; // the fastest first

using Key = std::array<uint8_t, 32>;
inline constexpr size_t tag_bytes = 16;

using CipherSet = uint8_t; // a bit for each; bits that are not known have no meaning
constexpr CipherSet bit_of(Cipher cipher) { return CipherSet(1 << unsigned(cipher)); }
CipherSet usable_ciphers(); // by this processor; chacha20_poly1305 always
const char *name_of(Cipher cipher);
const char *name_of(Level level);

class LibcryptoKey;

// A key, ready to be used in one direction. In secret memory, as a part of what holds it.
class CipherKey {
  public:
    CipherKey(Cipher cipher, Level level, bool seals);
    ~CipherKey();
    void set(const Key &key);
    // Each number is used once per key. seal() writes the tag behind the bytes, which it encrypts
    // in place if the level says so; open() undoes that. False: not what seal() made.
    void seal(uint64_t number, uint8_t *bytes, size_t length);
    [[nodiscard]] bool open(uint64_t number, uint8_t *bytes, size_t length);
    bool uses_libcrypto() const { return libcrypto_ready_; }

    static constexpr uint64_t worth_libcrypto = 1 << 20; // bytes in long records

  private:
    static constexpr size_t schedule_bytes = 512, long_bytes = 2048;
    bool is_for_libcrypto(size_t length) {
        return length >= long_bytes && (libcrypto_ready_ || prepare_libcrypto(length));
    }
    bool prepare_libcrypto(size_t length);

    alignas(16) uint8_t schedule_[schedule_bytes]; // the expanded key of AES
    Key key_;
    const Cipher cipher_;
    const Level level_;
    const bool seals_;
    bool libcrypto_ready_ = false; // it has the key
    bool has_libcrypto_;
    uint64_t carried_ = 0;                    // bytes of long records, before libcrypto was asked
    std::unique_ptr<LibcryptoKey> libcrypto_; // made when long records have carried enough
};

} // namespace dtrain::protection
