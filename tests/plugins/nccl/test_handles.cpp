// The handle and the messages by which two sides meet: whatever a peer sends is read, or refused.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "nccl/abi.h"
#include "nccl/messages.h"

#include <algorithm>
#include <cstring>
#include <random>

using namespace dtrain::nccl;

namespace {

constexpr uint64_t seed = 29; // cases are the same in every run

Bytes address_with(size_t length, size_t not_zero, std::mt19937_64 &random) {
    Bytes out(length);
    for (size_t i = 0; i < not_zero; i++) out[i] = uint8_t(1 + random() % 255);
    std::shuffle(out.begin(), out.end(), random);
    return out;
}

void handles_come_back(void **) {
    std::mt19937_64 random(seed);
    // The head has 13 bytes; then come a bit for each byte, and the bytes that are not zero.
    for (const size_t length : {1, 8, 56, 128, 255})
        for (size_t not_zero = 0; not_zero <= length; not_zero++) {
            Handle handle;
            handle.address = address_with(length, not_zero, random);
            handle.listener = uint32_t(random());
            uint8_t bytes[handle_bytes];
            const bool fits = 13 + (length + 7) / 8 + not_zero <= sizeof bytes;
            assert_int_equal(handle.encode(bytes), fits ? DTRAIN_OK : DTRAIN_ERR_INVALID);
            if (!fits) continue;
            Handle::set_attempt(bytes, 77);
            Handle read;
            assert_int_equal(read.decode(bytes), DTRAIN_OK);
            assert_true(read.address == handle.address);
            assert_int_equal(read.listener, handle.listener);
            assert_int_equal(read.attempt, 77);
        }
}

// A tcp device with four addresses of IPv6 has the most bytes that are not zero.
void the_longest_address_of_tcp_fits(void **) {
    std::mt19937_64 random(seed);
    Handle handle;
    handle.address = address_with(128, 28 + 4 * 17, random);
    uint8_t bytes[handle_bytes];
    assert_int_equal(handle.encode(bytes), DTRAIN_OK);
}

void messages_come_back(void **) {
    Hello hello;
    hello.attempt = 5;
    hello.transport = "ofi";
    hello.who = "host:1";
    hello.control = Bytes(128, 1);
    hello.data = Bytes(512, 2);
    const Bytes bytes = hello.encode();
    assert_true(bytes.size() <= most_message_bytes);
    Hello read;
    assert_true(read.decode(bytes.data(), bytes.size()));
    assert_true(read.attempt == 5 && read.transport == "ofi" && read.who == "host:1");
    assert_true(read.control == hello.control && read.data == hello.data);
    for (size_t length = 0; length < bytes.size(); length++)
        assert_false(read.decode(bytes.data(), length));

    Welcome welcome;
    welcome.status = DTRAIN_ERR_CONFIG;
    welcome.number = 9;
    welcome.text.assign(5000, 'x'); // is cut
    welcome.text += '\n';
    const Bytes answer = welcome.encode();
    Welcome told;
    assert_true(told.decode(answer.data(), answer.size()));
    assert_int_equal(told.status, DTRAIN_ERR_CONFIG);
    assert_int_equal(told.text.size(), 512);
}

void texts_are_printable(void **) {
    Hello hello;
    hello.who = "a\n\x1b[31m\xff";
    const Bytes bytes = hello.encode();
    Hello read;
    assert_true(read.decode(bytes.data(), bytes.size()));
    assert_string_equal(read.who.c_str(), "a??[31m?");
}

// Under the sanitizers this finds reads past the end.
void noise_is_read_or_refused(void **) {
    std::mt19937_64 random(seed);
    size_t refused = 0;
    for (int round = 0; round < 20'000; round++) {
        Bytes noise(random() % 300);
        for (uint8_t &byte : noise) byte = uint8_t(random() % (round % 2 ? 256 : 8));
        if (!noise.empty()) noise[0] = 1;
        Hello hello;
        Welcome welcome;
        refused += !hello.decode(noise.data(), noise.size());
        refused += !welcome.decode(noise.data(), noise.size());
        assert_true(hello.data.size() <= 512 && welcome.data.size() <= 512);
        noise.resize(handle_bytes);
        std::memcpy(noise.data(), "dtn\x01", 4);
        Handle handle;
        (void)handle.decode(noise.data());
        assert_true(handle.address.size() <= 255);
    }
    assert_true(refused > 1000);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(handles_come_back),
        cmocka_unit_test(the_longest_address_of_tcp_fits),
        cmocka_unit_test(messages_come_back),
        cmocka_unit_test(texts_are_printable),
        cmocka_unit_test(noise_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
