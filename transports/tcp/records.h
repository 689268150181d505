// The records of a protected connection: seals what is written to its socket, and opens what is
// read from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/guard.h"

#include <sys/types.h>

struct iovec;

namespace dtrain::tcp {

// Payloads are copied once, into the record that is written and out of the one that was read: what
// has not been checked never reaches the memory of a receive. The buffers take memory only as far
// as they have been used.
class Records {
  public:
    explicit Records(tp::Guard guard) : guard_(std::move(guard)) {}

    // Writes as sendmsg() does, but whole records: the result is how many of the pieces' bytes have
    // left, or -1 with errno. After EAGAIN the next call must be given the same bytes, since a part
    // of their record may have left.
    ssize_t write(int fd, const iovec *pieces, int n);
    bool begun() const { return out_sent_ > 0; } // a part of a record has left

    // Reads as recv() does. *drained: the socket has no more now.
    ssize_t read(int fd, bool *drained);
    // The payloads of the records that have been read, one after the other; they are valid until
    // the next read(). False: there is none now, or the stream is corrupt.
    bool next(const uint8_t **bytes, size_t *len);
    bool corrupt() const { return corrupt_; }

  private:
    static constexpr size_t most = tp::max_payload + tp::record_overhead;

    tp::Guard guard_;
    size_t out_length_ = 0, out_sent_ = 0, out_payload_ = 0; // 0: no record is being written
    size_t in_have_ = 0, in_at_ = 0;
    bool corrupt_ = false;
    uint8_t out_[most], in_[most];
};

} // namespace dtrain::tcp
