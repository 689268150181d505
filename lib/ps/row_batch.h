// The rows of one operation as its requests carry them: each key once, ordered by server.
// SPDX-License-Identifier: Apache-2.0
//
// Rows are numbered from 0, those of server 0 first. A request carries consecutive ones of one
// server.
#pragma once
#include "ps/partition.h"
#include "ps/protocol.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::ps {

struct ClientTable;
struct Outgoing;

class RowBatch {
  public:
    // What an operation on rows is given. keys[count], count < 2^32, in any order, may repeat; send
    // and receive: rows in the order of the keys, nullptr for kinds without. The table, keys, and
    // what receives stay as they are until the operation is done.
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
    // Fills in where payload and answer of a request of the kind in its header are. rows: some that
    // go together, from a multiple of rows_per_request on in the server's part.
    void attach(const Range &rows, Outgoing &request) const;
    // After every answer has come: hands a pull's rows to the caller.
    void scatter() const;

  private:
    void deduplicate(const uint64_t *keys);
    void order_by_server();
    void lay_out();
    void sum(const char *values, bool assigns);
    void prepare_answers(void *target);

    const ClientTable &table_;
    uint64_t size_, most_;         // bytes of a row; rows in a request
    std::vector<uint64_t> keys_;   // by row
    std::vector<uint32_t> row_of_; // by the caller's order
    std::vector<Range> parts_;     // by server
    std::vector<char *> places_;   // by row, of kinds that carry them: in sent_
    std::unique_ptr<char[]> sent_; // payloads
    std::unique_ptr<char[]> received_;
    char *answers_ = nullptr; // by row: in received_, or the caller's
    char *target_ = nullptr;  // the caller's, when answers are scattered
};

} // namespace dtrain::ps
