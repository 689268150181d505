// An operation of a simulated worker, and what it was.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "history.h"
#include "ps/client/client_table.h"
#include "ps/client/row_batch.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

class SimJob;

struct SimOp {
    dtrain::ps::Transfer transfer;
    Record record;
    SimJob *job = nullptr;
    bool done = false, recorded = false, may_time_out = false;
    dtrain_status_t due = DTRAIN_OK;    // how it should end
    std::vector<uint64_t> keys, values; // of a sparse table

    // Half of the elements that it adds nothing to.
    template <class Pick> void leave_out(Pick &&pick) {
        record.left_out.resize(record.range.count);
        for (uint64_t i = 0; i < record.range.count; ++i)
            record.left_out[i] = record.sent[i] == 0 && pick(2) == 0;
    }

    // The record's range as keys, in another order and some of them twice (a push: of nothing).
    template <class Pick> void make_rows(Pick &&pick, uint64_t nothing) {
        using dtrain::ps::RequestKind, dtrain::ps::RowBatch;
        std::vector<std::pair<uint64_t, uint64_t>> rows; // key, value
        for (uint64_t i = 0; i < record.range.count; ++i) {
            if (record.pushes() && !record.carries(record.range.first + i)) continue;
            rows.emplace_back((record.range.first + i) * 0x9e3779b97f4a7c15, record.sent[i]);
            if (pick(4) == 0) rows.emplace_back(rows.back().first, nothing);
        }
        for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[pick(i)]);
        for (const auto &[key, value] : rows) {
            keys.push_back(key);
            values.push_back(value);
        }
        transfer.kind = record.kind == Did::push   ? RequestKind::push_rows
                        : record.kind == Did::pull ? RequestKind::pull_rows
                                                   : RequestKind::push_pull_rows;
        transfer.range = {0, keys.size()};
        transfer.rows = std::make_shared<RowBatch>(
            *transfer.table,
            RowBatch::Call{transfer.kind, keys.data(), keys.size(), values.data(), values.data()});
    }

    // What a pull has brought, in the order of the record.
    void take_rows() {
        std::map<uint64_t, uint64_t> rows;
        for (size_t i = 0; i < keys.size(); ++i) {
            auto [row, fresh] = rows.try_emplace(keys[i], values[i]);
            if (!fresh && row->second != values[i]) row->second = UINT64_MAX; // found wrong
        }
        for (uint64_t i = 0; i < record.range.count; ++i)
            record.received[i] = rows[(record.range.first + i) * 0x9e3779b97f4a7c15];
    }
};

inline Did did(dtrain::ps::RequestKind kind) {
    using dtrain::ps::RequestKind;
    return kind == RequestKind::push        ? Did::push
           : kind == RequestKind::pull      ? Did::pull
           : kind == RequestKind::push_pull ? Did::push_pull
           : kind == RequestKind::clock     ? Did::clock
                                            : Did::other;
}
