// The ciphers: what one library seals the other one opens, whichever is taken for which length.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "protection/cipher.h"
#include "protection/libcrypto.h"

#include <cstring>
#include <sodium.h>
#include <vector>

using namespace dtrain::protection;

namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t lengths[] = {1, 15, 16, 17, 2047, 2048, 2049, 5000, 65536};
const Key key = {9, 8, 7};

Bytes text_of(size_t length) {
    Bytes text(length + tag_bytes);
    for (size_t i = 0; i < length; i++) text[i] = uint8_t(i * 31 + length);
    return text;
}

// As the other side would with nothing but libsodium.
Bytes by_sodium(uint64_t number, Level level, size_t length) {
    Bytes out = text_of(length);
    uint8_t nonce[12] = {};
    for (int i = 0; i < 8; i++) nonce[11 - i] = uint8_t(number >> 8 * i);
    if (level == Level::encrypted)
        crypto_aead_aes256gcm_encrypt_detached(out.data(), out.data() + length, nullptr, out.data(),
                                               length, nullptr, 0, nullptr, nonce, key.data());
    else
        crypto_aead_aes256gcm_encrypt_detached(out.data(), out.data() + length, nullptr, nullptr, 0,
                                               out.data(), length, nullptr, nonce, key.data());
    return out;
}

// After this the key uses libcrypto for long records, if there is one.
void carry_enough(CipherKey &its, bool seals) {
    for (uint64_t carried = 0; carried <= CipherKey::worth_libcrypto; carried += 65536) {
        Bytes bytes = text_of(65536);
        if (seals) its.seal(carried, bytes.data(), 65536);
        if (!seals) assert_false(its.open(carried, bytes.data(), 65536)); // nobody has sealed it
    }
    assert_int_equal(its.uses_libcrypto(), LibcryptoKey::make() != nullptr);
}

void both_libraries_make_the_same(void **) {
    if ((usable_ciphers() & bit_of(Cipher::aes256_gcm)) == 0) {
        print_message("this processor has no AES\n");
        skip();
    }
    if (LibcryptoKey::make() == nullptr) print_message("there is no libcrypto here\n");
    for (const Level level : {Level::integrity, Level::encrypted}) {
        alignas(16) CipherKey seals(Cipher::aes256_gcm, level, true);
        alignas(16) CipherKey opens(Cipher::aes256_gcm, level, false);
        seals.set(key);
        opens.set(key);
        uint64_t number = 0xABCDEF;
        for (const bool enough : {false, true}) {
            if (enough) carry_enough(seals, true);
            if (enough) carry_enough(opens, false);
            for (const size_t length : lengths) {
                Bytes mine = text_of(length);
                seals.seal(number, mine.data(), length);
                assert_true(mine == by_sodium(number, level, length));
                assert_true(opens.open(number, mine.data(), length));
                assert_memory_equal(mine.data(), text_of(length).data(), length);
                number++;
            }
            assert_true(enough || !seals.uses_libcrypto());
        }
    }
}

void no_bit_may_change(void **) {
    for (const Cipher cipher : {Cipher::aes256_gcm, Cipher::chacha20_poly1305})
        for (const Level level : {Level::integrity, Level::encrypted}) {
            if ((usable_ciphers() & bit_of(cipher)) == 0) continue;
            alignas(16) CipherKey seals(cipher, level, true), opens(cipher, level, false);
            seals.set(key);
            opens.set(key);
            if (cipher == Cipher::aes256_gcm) carry_enough(seals, true);
            if (cipher == Cipher::aes256_gcm) carry_enough(opens, false);
            for (const size_t length : {size_t{3}, size_t{2048}}) {
                Bytes sealed = text_of(length);
                seals.seal(1, sealed.data(), length);
                for (size_t bit = 0; bit<8 * sealed.size(); bit += length> 100 ? 131 : 1) {
                    Bytes bad = sealed;
                    bad[bit / 8] ^= uint8_t(1 << bit % 8);
                    assert_false(opens.open(1, bad.data(), length));
                }
                Bytes good = sealed;
                assert_false(opens.open(2, good.data(), length)); // the number of another record
                good = sealed;
                assert_false(opens.open(1, good.data() + 1, length - 1));
                good = sealed;
                assert_true(opens.open(1, good.data(), length));
            }
        }
}

// Each key seals each number once, so the same bytes never look the same twice.
void keys_and_numbers_count(void **) {
    for (const Cipher cipher : {Cipher::aes256_gcm, Cipher::chacha20_poly1305}) {
        if ((usable_ciphers() & bit_of(cipher)) == 0) continue;
        alignas(16) CipherKey seals(cipher, Level::encrypted, true);
        std::vector<Bytes> all;
        for (const uint8_t first : {1, 2}) {
            Key fresh = key;
            fresh[0] = first;
            seals.set(fresh);
            for (const uint64_t number : {0, 1})
                for (const size_t length : {size_t{64}, size_t{4096}}) {
                    Bytes sealed(length + tag_bytes);
                    seals.seal(number, sealed.data(), length);
                    sealed.resize(64);
                    all.push_back(sealed);
                }
        }
        assert_true(all[0] != all[2] && all[0] != all[4] && all[2] != all[6]);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(both_libraries_make_the_same),
        cmocka_unit_test(no_bit_may_change),
        cmocka_unit_test(keys_and_numbers_count),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
