// Seals and opens the records of a connection.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/records.h"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>

namespace dtrain::tcp {

ssize_t Records::write(int fd, const iovec *pieces, int n) {
    if (!out_length_) {
        uint8_t *const payload = out_ + tp::record_header;
        out_payload_ = 0;
        for (int i = 0; i < n && out_payload_ < tp::max_payload; i++) {
            const size_t part = std::min(pieces[i].iov_len, tp::max_payload - out_payload_);
            memcpy(payload + out_payload_, pieces[i].iov_base, part);
            out_payload_ += part;
        }
        out_length_ = guard_.seal(out_, out_payload_);
    }
    while (out_sent_ < out_length_) {
        const ssize_t sent =
            ::send(fd, out_ + out_sent_, out_length_ - out_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) return sent;
        out_sent_ += size_t(sent);
    }
    out_length_ = out_sent_ = 0;
    return ssize_t(out_payload_);
}

// At most one record of the largest size fits, so nothing of a stream of such records is ever
// moved.
ssize_t Records::read(int fd, bool *drained) {
    if (in_at_) memmove(in_, in_ + in_at_, in_have_ -= in_at_);
    in_at_ = 0;
    const size_t room = sizeof in_ - in_have_;
    const ssize_t got = ::recv(fd, in_ + in_have_, room, MSG_DONTWAIT);
    *drained = got < ssize_t(room);
    if (got > 0) in_have_ += size_t(got);
    return got;
}

bool Records::next(const uint8_t **bytes, size_t *len) {
    if (corrupt_ || in_have_ - in_at_ < tp::record_header) return false;
    uint8_t *const record = in_ + in_at_;
    const size_t length = tp::Guard::payload_length(record);
    if (length && in_have_ - in_at_ < length + tp::record_overhead) return false;
    corrupt_ = !length || !guard_.open(record, length);
    *bytes = record + tp::record_header;
    *len = length;
    in_at_ += length + tp::record_overhead;
    return !corrupt_;
}

} // namespace dtrain::tcp
