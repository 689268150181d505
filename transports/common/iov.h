// A position in a gather/scatter list, which is filled or drained step by step.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"
#include "dtrain_transport.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sys/uio.h>

namespace dtrain::tp {

inline constexpr uint32_t max_iov = 16; // pieces per message, for attr.max_iov

// Computes the sum of the lengths; false if there are too many pieces, a piece has a length but no
// address, or the sum overflows.
inline bool iov_length(const dtrain_tp_iov_t *iov, uint32_t n, uint64_t *length_p) {
    if (n > max_iov || (n && !iov)) return false;
    uint64_t length = 0;
    for (uint32_t i = 0; i < n; i++)
        if ((iov[i].len && !iov[i].addr) || __builtin_add_overflow(length, iov[i].len, &length))
            return false;
    *length_p = length;
    return true;
}

// A copy of the list (not of the buffers) and the position in it.
class IovCursor {
  public:
    // The list must have been accepted by iov_length(), which computed `length`.
    void assign(const dtrain_tp_iov_t *iov, uint32_t n, uint64_t length) {
        if (n) std::copy_n(iov, n, iov_);
        index_ = 0;
        offset_ = 0;
        remaining_ = length;
    }
    uint64_t remaining() const { return remaining_; }
    // Ends the list early: at most `length` bytes from here on.
    void truncate(uint64_t length) { remaining_ = std::min(remaining_, length); }

    // The next contiguous bytes; *len is 0 at the end.
    uint8_t *piece(uint64_t *len) {
        if (!remaining_) {
            *len = 0;
            return nullptr;
        }
        while (offset_ == iov_[index_].len) { // also skips empty pieces
            index_++;
            offset_ = 0;
        }
        *len = std::min(iov_[index_].len - offset_, remaining_);
        return static_cast<uint8_t *>(iov_[index_].addr) + offset_;
    }
    // Properties of the piece that piece() returned: its index, and its registration or nullptr.
    uint32_t index() const { return index_; }
    dtrain_tp_mr_t *registration() const { return remaining_ ? iov_[index_].mr : nullptr; }
    // len <= remaining()
    void advance(uint64_t len) {
        while (len) {
            uint64_t part;
            piece(&part);
            part = std::min(part, len);
            offset_ += part;
            remaining_ -= part;
            len -= part;
        }
    }
    // Copies min(len, remaining()) bytes from `from` into the list; returns how many.
    uint64_t scatter(const void *from, uint64_t len) {
        const uint64_t total = std::min(len, remaining_);
        for (uint64_t at = 0; at < total;) {
            uint64_t part;
            uint8_t *to = piece(&part);
            part = std::min(part, total - at);
            memcpy(to, static_cast<const uint8_t *>(from) + at, part);
            advance(part);
            at += part;
        }
        return total;
    }
    // Copies min(len, remaining()) bytes from the list to `to`; returns how many.
    uint64_t gather(void *to, uint64_t len) {
        const uint64_t total = peek(to, len);
        advance(total);
        return total;
    }
    // As gather(), but does not advance.
    uint64_t peek(void *to, uint64_t len) const {
        const uint64_t total = std::min(len, remaining_);
        uint64_t offset = offset_;
        for (uint64_t at = 0, i = index_; at < total; i++, offset = 0) {
            const uint64_t part = std::min(iov_[i].len - offset, total - at);
            if (!part) continue;
            memcpy(static_cast<uint8_t *>(to) + at, static_cast<uint8_t *>(iov_[i].addr) + offset,
                   part);
            at += part;
        }
        return total;
    }
    // Describes up to `bytes` of the next bytes in out[0..max_iov); returns the number of pieces.
    // Does not advance.
    int describe(struct iovec *out, uint64_t bytes) const {
        IovCursor rest = *this;
        rest.truncate(bytes);
        int n = 0;
        for (uint64_t len; rest.remaining(); rest.advance(len)) {
            out[n].iov_base = rest.piece(&len);
            out[n++].iov_len = len;
        }
        return n;
    }

  private:
    dtrain_tp_iov_t iov_[max_iov];
    uint32_t index_ = 0;
    uint64_t offset_ = 0;
    uint64_t remaining_ = 0;
};

} // namespace dtrain::tp
