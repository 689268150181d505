// The rows of one operation as its requests carry them: each key once, ordered by server.
// SPDX-License-Identifier: Apache-2.0
//
// Rows are numbered from 0, those of server 0 first. A request carries consecutive ones of one
// server. Only their order is worked out at first: what a request carries is put together when it
// leaves and taken apart when its answer comes, while it is in the cache and servers are at work.
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
    // What an operation on rows is given. keys[count], count < 2^32, in any order, may repeat; send
    // and receive: rows in the order of the keys, nullptr for kinds without. The table and all
    // arrays stay as they are until the operation is done.
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
    // Of one request of that kind: bytes that attach() may use.
    uint64_t scratch_bytes(RequestKind kind, uint64_t rows) const;
    // Fills in where payload and answer of a request of the kind in its header are: in the caller's
    // arrays, or in scratch (8-byte aligned). rows: some that go together, from a multiple of
    // rows_per_request on in the server's part.
    void attach(const Range &rows, Outgoing &request, char *scratch) const;
    // Of a push: the key of a row that is not finite, as servers would get it.
    std::optional<uint64_t> find_not_finite() const;
    // The answer to such a request has come: hands its rows to the caller.
    void deliver(const Range &rows, const void *answer) const;

  private:
    void deduplicate();
    void order_by_server();
    // wide: room for a row that is summed up before it is rounded, and for another one.
    void gather(const Range &rows, RequestKind kind, char *to, char *wide) const;
    bool repeats(uint64_t row) const;
    // The sum of a repeated key's rows, which are of f16 or bf16, rounded once.
    void add_up_halves(uint64_t row, char *to, float *wide) const;
    // f(i) for each place of the row's key in the caller's array, in order.
    template <class F> void for_each_place(uint64_t row, F &&f) const;

    const ClientTable &table_;
    const Call call_;
    const uint64_t size_, most_;  // bytes of the caller's row; rows in a request
    const bool narrow_;           // rows travel in another type,
    const uint64_t sent_;         // as so many bytes
    const bool halves_;           // rows are of f16 or bf16
    std::vector<uint32_t> order_; // by row: the first place of its key. Empty: row i is place i
    std::vector<uint32_t> later_; // by place: the next one of the same key, or 0; empty: none has
    std::vector<Range> parts_;    // by server
};

} // namespace dtrain::ps
