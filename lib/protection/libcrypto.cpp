// Calls libcrypto through a table of functions that are the same in each version 3.
// SPDX-License-Identifier: Apache-2.0
#include "protection/libcrypto.h"

#include "base/shared_object.h"

#include <new>

namespace dtrain::protection {
namespace {

constexpr char library[] = "libcrypto.so.3";
constexpr int get_tag = 0x10, set_tag = 0x11; // EVP_CTRL_AEAD_GET_TAG, _SET_TAG
constexpr size_t some_memory = 512 << 10;     // about twice what OpenSSL 3.0 takes at first
constexpr uint64_t no_atexit = 0x0008'0000;   // OPENSSL_INIT_NO_ATEXIT

struct Functions {
    int (*OPENSSL_init_crypto)(uint64_t options, const void *settings);
    void (*ERR_clear_error)();
    void *(*OSSL_LIB_CTX_new)();
    void *(*EVP_CIPHER_fetch)(void *library, const char *name, const char *properties);
    void *(*EVP_CIPHER_CTX_new)();
    void (*EVP_CIPHER_CTX_free)(void *context);
    int (*EVP_CipherInit_ex2)(void *context, const void *cipher, const uint8_t *key,
                              const uint8_t *nonce, int encrypts, const void *parameters);
    int (*EVP_CipherUpdate)(void *context, uint8_t *out, int *out_length, const uint8_t *in,
                            int length);
    int (*EVP_CipherFinal_ex)(void *context, uint8_t *out, int *out_length);
    int (*EVP_CIPHER_CTX_ctrl)(void *context, int type, int length, void *pointer);
    void *cipher; // nullptr: the library cannot be used

    // In a context of the library's own, so that neither the program's settings of OpenSSL nor its
    // end of OpenSSL matter. Threads may still run when the process exits, hence no_atexit. What
    // OpenSSL initializes when it first meets an error ends in a deadlock if it lacks memory, so
    // that is done here, and only if there is some.
    Functions() : cipher(nullptr) {
        SharedObject object;
        const bool complete = has_memory() && object.open(library) == DTRAIN_OK &&
                              find(object, "OPENSSL_init_crypto", OPENSSL_init_crypto) &&
                              find(object, "ERR_clear_error", ERR_clear_error) &&
                              find(object, "OSSL_LIB_CTX_new", OSSL_LIB_CTX_new) &&
                              find(object, "EVP_CIPHER_fetch", EVP_CIPHER_fetch) &&
                              find(object, "EVP_CIPHER_CTX_new", EVP_CIPHER_CTX_new) &&
                              find(object, "EVP_CIPHER_CTX_free", EVP_CIPHER_CTX_free) &&
                              find(object, "EVP_CipherInit_ex2", EVP_CipherInit_ex2) &&
                              find(object, "EVP_CipherUpdate", EVP_CipherUpdate) &&
                              find(object, "EVP_CipherFinal_ex", EVP_CipherFinal_ex) &&
                              find(object, "EVP_CIPHER_CTX_ctrl", EVP_CIPHER_CTX_ctrl) &&
                              OPENSSL_init_crypto(no_atexit, nullptr) == 1;
        if (complete) ERR_clear_error();
        void *const context = complete ? OSSL_LIB_CTX_new() : nullptr; // kept forever
        if (context != nullptr) cipher = EVP_CIPHER_fetch(context, "AES-256-GCM", nullptr);
    }
    static bool has_memory() {
        const std::unique_ptr<char[]> much(new (std::nothrow) char[some_memory]);
        return much != nullptr;
    }
    template <class Function>
    static bool find(const SharedObject &object, const char *name, Function &function) {
        function = reinterpret_cast<Function>(object.find(name));
        return function != nullptr;
    }
};

const Functions &functions() {
    static const Functions all;
    return all;
}

} // namespace

std::unique_ptr<LibcryptoKey> LibcryptoKey::make() {
    const Functions &f = functions();
    void *const context = f.cipher != nullptr ? f.EVP_CIPHER_CTX_new() : nullptr;
    if (context == nullptr) return nullptr;
    std::unique_ptr<LibcryptoKey> key(new (std::nothrow) LibcryptoKey(context));
    if (key == nullptr) f.EVP_CIPHER_CTX_free(context);
    return key;
}

LibcryptoKey::~LibcryptoKey() { functions().EVP_CIPHER_CTX_free(context_); }

bool LibcryptoKey::set(const Key &key, bool seals) {
    const Functions &f = functions();
    return f.EVP_CipherInit_ex2(context_, f.cipher, key.data(), nullptr, seals ? 1 : 0, nullptr) ==
           1;
}

// Associated data have no output.
bool LibcryptoKey::run(const uint8_t nonce[12], uint8_t *bytes, size_t length, bool encrypts) {
    const Functions &f = functions();
    int written = 0;
    return f.EVP_CipherInit_ex2(context_, nullptr, nullptr, nonce, -1, nullptr) == 1 &&
           f.EVP_CipherUpdate(context_, encrypts ? bytes : nullptr, &written, bytes, int(length)) ==
               1;
}

bool LibcryptoKey::seal(const uint8_t nonce[12], uint8_t *bytes, size_t length, bool encrypts) {
    const Functions &f = functions();
    int written = 0;
    uint8_t *const tag = bytes + length;
    return run(nonce, bytes, length, encrypts) &&
           f.EVP_CipherFinal_ex(context_, tag, &written) == 1 &&
           f.EVP_CIPHER_CTX_ctrl(context_, get_tag, int(tag_bytes), tag) == 1;
}

bool LibcryptoKey::open(const uint8_t nonce[12], uint8_t *bytes, size_t length, bool encrypts) {
    const Functions &f = functions();
    int written = 0;
    uint8_t rest[16];
    uint8_t *const tag = bytes + length;
    return run(nonce, bytes, length, encrypts) &&
           f.EVP_CIPHER_CTX_ctrl(context_, set_tag, int(tag_bytes), tag) == 1 &&
           f.EVP_CipherFinal_ex(context_, rest, &written) == 1;
}

} // namespace dtrain::protection
