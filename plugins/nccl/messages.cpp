// Writes and reads handles and messages; integers are little-endian.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/messages.h"

#include "nccl/abi.h"

#include <algorithm>
#include <cstring>
#include <endian.h>

namespace dtrain::nccl {
namespace {

constexpr uint8_t format = 1; // of handles and messages
constexpr size_t longest_part = 512;

struct Head { // of a handle; then a bit for each byte of the address, and the bytes that are not
              // zero
    char magic[3];
    uint8_t version;
    uint32_t listener, attempt;
    uint8_t address_bytes;
};
constexpr size_t head_bytes = offsetof(Head, address_bytes) + 1;
constexpr char magic[] = "dtn";

class Writer {
  public:
    Writer() { bytes_.push_back(format); }
    Writer &number(uint32_t value) {
        const uint32_t little = htole32(value);
        return raw(&little, sizeof little);
    }
    Writer &part(const void *data, size_t length) {
        length = std::min(length, longest_part); // only texts can be longer
        const uint16_t little = htole16(uint16_t(length));
        return raw(&little, sizeof little).raw(data, length);
    }
    Bytes take() { return std::move(bytes_); }

  private:
    Writer &raw(const void *data, size_t length) {
        const auto *from = static_cast<const uint8_t *>(data);
        bytes_.insert(bytes_.end(), from, from + length);
        return *this;
    }
    Bytes bytes_;
};

class Reader {
  public:
    Reader(const uint8_t *at, size_t left) : at_(at), left_(left) {
        uint8_t version = 0;
        raw(&version, 1);
        good_ = good_ && version == format;
    }
    Reader &number(uint32_t &value) {
        uint32_t little = 0;
        raw(&little, sizeof little);
        value = le32toh(little);
        return *this;
    }
    template <class Part> Reader &part(Part &out) {
        uint16_t little = 0;
        raw(&little, sizeof little);
        out.resize(std::min<size_t>(le16toh(little), longest_part));
        raw(out.data(), out.size());
        return *this;
    }
    bool complete() const { return good_ && left_ == 0; }

  private:
    void raw(void *out, size_t length) {
        good_ = good_ && length <= left_;
        if (!good_ || length == 0) return;
        std::memcpy(out, at_, length);
        at_ += length;
        left_ -= length;
    }
    const uint8_t *at_;
    size_t left_;
    bool good_ = true;
};

// What a peer wrote goes to a log.
void make_printable(std::string &text) {
    std::ranges::replace_if(
        text, [](char c) { return c < ' ' || c > '~'; }, '?');
}

} // namespace

Status Handle::encode(void *handle) const {
    uint8_t out[handle_bytes] = {};
    const size_t map_bytes = (address.size() + 7) / 8;
    size_t used = head_bytes + map_bytes;
    Head head = {{magic[0], magic[1], magic[2]},
                 format,
                 htole32(listener),
                 htole32(attempt),
                 uint8_t(address.size())};
    if (address.size() > UINT8_MAX || used > sizeof out)
        return fail(DTRAIN_ERR_INVALID, "an address of %zu bytes does not fit into NCCL's handle",
                    address.size());
    std::memcpy(out, &head, head_bytes);
    for (size_t i = 0; i < address.size(); i++) {
        if (address[i] == 0) continue;
        if (used == sizeof out)
            return fail(DTRAIN_ERR_INVALID,
                        "this host's addresses do not fit into NCCL's handle of %zu bytes; set "
                        "option tcp.interface to the interface that the other hosts reach",
                        sizeof out);
        out[head_bytes + i / 8] |= uint8_t(1 << i % 8);
        out[used++] = address[i];
    }
    std::memcpy(handle, out, sizeof out);
    return DTRAIN_OK;
}

Status Handle::decode(const void *handle) {
    uint8_t in[handle_bytes];
    std::memcpy(in, handle, sizeof in);
    Head head;
    std::memcpy(&head, in, head_bytes);
    size_t used = head_bytes + (size_t{head.address_bytes} + 7) / 8;
    bool good = std::memcmp(head.magic, magic, sizeof head.magic) == 0 && head.version == format;
    good = good && head.address_bytes > 0 && used <= sizeof in;
    address.assign(good ? head.address_bytes : 0, 0);
    for (size_t i = 0; good && i < address.size(); i++) {
        if ((in[head_bytes + i / 8] >> i % 8 & 1) == 0) continue;
        good = used < sizeof in;
        if (good) address[i] = in[used++];
    }
    if (!good)
        return fail(DTRAIN_ERR_INVALID,
                    "this is not a handle of this plugin's version; all ranks need the same plugin "
                    "of the same release (NCCL_NET_PLUGIN)");
    listener = le32toh(head.listener);
    attempt = le32toh(head.attempt);
    return DTRAIN_OK;
}

void Handle::set_attempt(void *handle, uint32_t attempt) {
    const uint32_t little = htole32(attempt);
    std::memcpy(static_cast<uint8_t *>(handle) + offsetof(Head, attempt), &little, sizeof little);
}

Bytes Hello::encode() const {
    return Writer()
        .number(attempt)
        .part(transport.data(), transport.size())
        .part(who.data(), who.size())
        .part(control.data(), control.size())
        .part(data.data(), data.size())
        .take();
}

bool Hello::decode(const uint8_t *bytes, size_t length) {
    const bool good = Reader(bytes, length)
                          .number(attempt)
                          .part(transport)
                          .part(who)
                          .part(control)
                          .part(data)
                          .complete();
    make_printable(transport);
    make_printable(who);
    return good;
}

Bytes Welcome::encode() const {
    return Writer()
        .number(uint32_t(status))
        .number(number)
        .part(text.data(), text.size())
        .part(who.data(), who.size())
        .part(data.data(), data.size())
        .take();
}

bool Welcome::decode(const uint8_t *bytes, size_t length) {
    uint32_t code = 0;
    const bool good = Reader(bytes, length)
                          .number(code)
                          .number(number)
                          .part(text)
                          .part(who)
                          .part(data)
                          .complete();
    status = Status(code);
    make_printable(text);
    make_printable(who);
    return good && number <= INT32_MAX && status <= DTRAIN_OK && status >= DTRAIN_ERR_INTERNAL;
}

Bytes encode_ready(uint32_t number) { return Writer().number(number).take(); }

bool decode_ready(const Bytes &bytes, size_t length, uint32_t &number) {
    return Reader(bytes.data(), std::min(length, bytes.size())).number(number).complete() &&
           number <= INT32_MAX;
}

} // namespace dtrain::nccl
