// The handle and the messages with which two sides of NCCL's plugin connect, as another rank sends
// them.
// SPDX-License-Identifier: Apache-2.0
//
// Input: what it is, then its bytes. What the decoder takes must be the same after it was encoded.
#include "tests/fuzz/fuzz.h"

#include "nccl/abi.h"
#include "nccl/messages.h"

using namespace dtrain;
using fuzz::Bytes;

namespace {

enum class What : uint8_t { handle, hello, welcome, ready, count };

bool printable(const std::string &text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

void check_handle(Bytes bytes) {
    bytes.resize(nccl::handle_bytes); // NCCL's handles have one length
    nccl::Handle handle, again;
    if (handle.decode(bytes.data()) != DTRAIN_OK) return;
    FUZZ_REQUIRE(!handle.address.empty() && handle.address.size() <= UINT8_MAX);
    Bytes other(nccl::handle_bytes);
    FUZZ_REQUIRE(handle.encode(other.data()) == DTRAIN_OK);
    FUZZ_REQUIRE(again.decode(other.data()) == DTRAIN_OK);
    FUZZ_REQUIRE(again.address == handle.address && again.listener == handle.listener &&
                 again.attempt == handle.attempt);
    nccl::Handle::set_attempt(other.data(), handle.attempt + 1);
    FUZZ_REQUIRE(again.decode(other.data()) == DTRAIN_OK && again.attempt == handle.attempt + 1);
}

bool is_refusal_or_none(const nccl::Welcome &welcome) {
    return welcome.status <= DTRAIN_OK && welcome.status >= DTRAIN_ERR_INTERNAL;
}
bool is_refusal_or_none(const nccl::Hello &) { return true; }

template <class Message> void check_message(const Bytes &bytes) {
    Message message, again;
    const bool good = message.decode(bytes.data(), bytes.size());
    FUZZ_REQUIRE(printable(message.who));
    if (!good) return;
    FUZZ_REQUIRE(is_refusal_or_none(message));
    const Bytes other = message.encode();
    FUZZ_REQUIRE(again.decode(other.data(), other.size()) && again.encode() == other);
    FUZZ_REQUIRE(other.size() <= nccl::most_message_bytes);
}

void check_ready(const Bytes &bytes, size_t length) {
    uint32_t number = 0, again = 0;
    if (!nccl::decode_ready(bytes, length, number)) return;
    const Bytes other = nccl::encode_ready(number);
    FUZZ_REQUIRE(nccl::decode_ready(other, other.size(), again) && again == number);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const What what = What(in.byte() % uint8_t(What::count));
    const uint8_t length = what == What::ready ? in.byte() : 0;
    const Bytes bytes = in.rest();
    switch (what) {
    case What::handle: check_handle(bytes); break;
    case What::hello: check_message<nccl::Hello>(bytes); break;
    case What::welcome: check_message<nccl::Welcome>(bytes); break;
    default: check_ready(bytes, length);
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    nccl::Handle handle;
    handle.address = {1, 0, 2, 0, 0, 0, 0, 0, 0, 3};
    handle.listener = 7;
    Bytes carried(nccl::handle_bytes);
    FUZZ_REQUIRE(handle.encode(carried.data()) == DTRAIN_OK);
    nccl::Hello hello;
    hello.attempt = 3, hello.transport = "tcp", hello.who = "host:1", hello.control = {1, 2};
    hello.data = {3};
    nccl::Welcome welcome;
    welcome.number = 5, welcome.who = "host\n:2", welcome.data = {4, 5};
    nccl::Welcome refusal;
    refusal.status = DTRAIN_ERR_CONFIG, refusal.text = std::string(600, 'x');
    const auto of = [](What what, const Bytes &bytes) -> Bytes {
        return Made().byte(uint8_t(what)).all(bytes);
    };
    nccl::Welcome odd; // a status that a failed call cannot have
    odd.status = DTRAIN_IN_PROGRESS;
    Bytes truncated = hello.encode();
    truncated.pop_back();
    const Bytes ready = nccl::encode_ready(9);
    return {of(What::handle, carried),
            of(What::handle, Bytes(nccl::handle_bytes, 0xff)),
            of(What::hello, hello.encode()),
            of(What::hello, truncated),
            of(What::welcome, welcome.encode()),
            of(What::welcome, refusal.encode()),
            of(What::welcome, odd.encode()),
            Made().byte(uint8_t(What::ready)).byte(uint8_t(ready.size())).all(ready)};
}
