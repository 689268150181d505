// A pack: several small requests or answers in one message.
// SPDX-License-Identifier: Apache-2.0
//
// A pack has 8 bytes that identify it (pack_begin). Then follow, for each request or answer: the
// size of its payload in 8 bytes, its 64-byte header, its payload, and zeros up to a multiple of 8
// bytes.
#pragma once
#include "ps/table/protocol.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace dtrain::ps {

inline constexpr uint64_t pack_begin = 0x4b505444;    // "DTPK"; differs from protocol_magic
inline constexpr uint64_t most_packed = 1024;         // largest payload that is copied into a pack
inline constexpr uint64_t most_pack_bytes = 16 << 10; // largest pack

class Pack {
  public:
    Pack() : bytes_(most_pack_bytes) { clear(); }
    void clear() {
        std::memcpy(bytes_.data(), &pack_begin, sizeof pack_begin);
        size_ = sizeof pack_begin;
    }
    // bytes: at most most_packed.
    bool has_room_for(uint64_t bytes) const { return size_ + taken_by(bytes) <= bytes_.size(); }
    template <class Header> void add(const Header &header, const void *payload, uint64_t bytes) {
        static_assert(sizeof header == header_bytes);
        char *to = bytes_.data() + size_;
        std::memcpy(to, &bytes, sizeof bytes);
        std::memcpy(to + sizeof bytes, &header, sizeof header);
        size_ += taken_by(bytes);
        if (bytes == 0) return;
        std::memset(bytes_.data() + size_ - sizeof bytes, 0, sizeof bytes);
        std::memcpy(to + sizeof bytes + sizeof header, payload, bytes);
    }
    char *data() { return bytes_.data(); }
    uint64_t size() const { return size_; }

  private:
    static constexpr uint64_t header_bytes = 64;
    static constexpr uint64_t taken_by(uint64_t bytes) {
        return sizeof bytes + header_bytes + (bytes + 7) / 8 * 8;
    }

    std::vector<char> bytes_;
    uint64_t size_ = 0;
};

inline bool is_pack(const char *message, uint64_t size) {
    return size >= sizeof pack_begin && std::memcmp(message, &pack_begin, sizeof pack_begin) == 0;
}

// Calls f(header, payload, bytes) for each; payloads are aligned to 8 bytes if the message is.
// False: the rest of the message is malformed.
template <class Header, class F> bool unpack(const char *message, uint64_t size, F &&f) {
    for (uint64_t at = sizeof pack_begin; at < size;) {
        uint64_t bytes = 0;
        Header header;
        if (size - at < sizeof bytes + sizeof header) return false;
        std::memcpy(&bytes, message + at, sizeof bytes);
        std::memcpy(&header, message + at + sizeof bytes, sizeof header);
        at += sizeof bytes + sizeof header;
        if (bytes > most_packed || size - at < (bytes + 7) / 8 * 8) return false;
        f(header, message + at, bytes);
        at += (bytes + 7) / 8 * 8;
    }
    return true;
}

} // namespace dtrain::ps
