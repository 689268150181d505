// The rows of one operation in the order of its requests: each key once, ordered by server.
// SPDX-License-Identifier: Apache-2.0
//
// Rows are numbered from 0, those of server 0 first. A request carries consecutive rows of one
// server. The constructor only determines the order. The payload of a request is built when it is
// sent, and its answer is unpacked when it comes, while the data is in the cache and servers work.
#pragma once
#include "ps/placement/partition.h"
#include "ps/table/protocol.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace dtrain::ps {

struct ClientTable;
struct Outgoing;

class RowBatch {
  public:
    // The caller's arguments. keys[count] are in any order and may repeat, count < 2^32. send and
    // receive have rows in the order of the keys, and are nullptr for kinds without them. The table
    // and all arrays must not change until the operation is done.
    struct Call {
        RequestKind kind;
        const uint64_t *keys;
        uint64_t count;
        const void *send = nullptr;
        void *receive = nullptr;
        uint64_t argument = 0; // of the header
    };
    RowBatch(const ClientTable &table, const Call &call);

    uint64_t rows_per_request() const { return most_; } // at most
    const Range &part(uint32_t server) const { return parts_[server]; }
    // The bytes of scratch that attach() may use for one request of that kind.
    uint64_t scratch_bytes(RequestKind kind, uint64_t rows) const;
    // Builds the request's payload for the kind in its header, and sets the memory of payload and
    // answer, in the caller's arrays or in scratch (8-byte aligned). rows: the rows of one request,
    // which start at a multiple of rows_per_request within the server's part.
    void attach(const Range &rows, Outgoing &request, char *scratch) const;
    // For a push: a key whose row would not be finite as servers receive it.
    std::optional<uint64_t> find_not_finite() const;
    // Copies the rows of a request's answer to the caller.
    void deliver(const Range &rows, const void *answer) const;

  private:
    void deduplicate();
    void order_by_server();
    // wide: scratch for two rows in f32: a sum before it is rounded, and one addend.
    void gather(const Range &rows, RequestKind kind, char *to, char *wide) const;
    bool repeats(uint64_t row) const;
    // Adds up the f16 or bf16 rows of a repeated key in f32, and rounds the sum once.
    void add_up_halves(uint64_t row, char *to, float *wide) const;
    // Calls f(i) for each place i of the row's key in the caller's array, in order.
    template <class F> void for_each_place(uint64_t row, F &&f) const;

    const ClientTable &table_;
    const Call call_;
    const uint64_t size_, most_;  // bytes of the caller's row; maximum rows in a request
    const bool narrow_;           // rows are sent in the wire_dtype
    const uint64_t sent_;         // bytes of a row as sent
    const bool halves_;           // pushed rows are of f16 or bf16
    std::vector<uint32_t> order_; // by row: the first place of its key; empty: row i is at place i
    std::vector<uint32_t> later_; // by place: the next place of its key, or 0; empty: no repeats
    std::vector<Range> parts_;    // by server
};

} // namespace dtrain::ps
