// The rows of one operation as its requests carry them: each key once, ordered by server.
// SPDX-License-Identifier: Apache-2.0
//
// Rows are numbered from 0, those of server 0 first. A request carries consecutive ones of one
// server.
#pragma once
#include "ps/partition.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain::ps {

struct ClientTable;
struct Outgoing;

class RowBatch {
  public:
    // keys[count], count < 2^32, in any order, may repeat. table, keys, and values stay as they are
    // until the operation is done.
    static std::shared_ptr<RowBatch> of_push(const ClientTable &table, const uint64_t *keys,
                                             uint64_t count, const void *values);
    static std::shared_ptr<RowBatch> of_pull(const ClientTable &table, const uint64_t *keys,
                                             uint64_t count, void *values);

    const Range &part(uint32_t server) const { return parts_[server]; }
    // Fills in where payload and answer of that request are. rows: some that go together, from a
    // multiple of the table's rows_per_request on in the server's part.
    void attach(const Range &rows, Outgoing &request) const;
    // After every answer has come: hands a pull's rows to the caller.
    void scatter() const;

  private:
    RowBatch(const ClientTable &table, const uint64_t *keys, uint64_t count);
    void deduplicate(const uint64_t *keys);
    void order_by_server();
    void lay_out();
    void sum(const char *values);

    const ClientTable &table_;
    std::vector<uint64_t> keys_;   // by row
    std::vector<uint32_t> row_of_; // by the caller's order
    std::vector<Range> parts_;     // by server
    std::vector<char *> places_;   // by row, of a push: in memory_
    std::unique_ptr<char[]> memory_;
    char *pulled_ = nullptr; // rows of a pull: in memory_, or the caller's
    char *target_ = nullptr; // the caller's, of a pull that is scattered
};

} // namespace dtrain::ps
