// AES-256-GCM of OpenSSL's libcrypto, which is opened at run time where it is installed. On long
// records it is two to five times as fast as libsodium's (bench_protection).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "protection/cipher.h"

#include <memory>

namespace dtrain::protection {

// One key in one direction. libcrypto keeps the expanded key in memory of its own, which it wipes,
// but which is not secret memory.
class LibcryptoKey {
  public:
    // nullptr: there is no libcrypto 3 that has the cipher.
    static std::unique_ptr<LibcryptoKey> make();
    ~LibcryptoKey();
    LibcryptoKey(const LibcryptoKey &) = delete;

    [[nodiscard]] bool set(const Key &key, bool seals);
    // As CipherKey, except that seal() may fail, too.
    [[nodiscard]] bool seal(const uint8_t nonce[12], uint8_t *bytes, size_t length, bool encrypts);
    [[nodiscard]] bool open(const uint8_t nonce[12], uint8_t *bytes, size_t length, bool encrypts);

  private:
    explicit LibcryptoKey(void *context) : context_(context) {}
    bool run(const uint8_t nonce[12], uint8_t *bytes, size_t length, bool encrypts);

    void *context_;
};

} // namespace dtrain::protection
