// Finds out whether a table moves, and sets its parts on its new servers.
// SPDX-License-Identifier: Apache-2.0
#include "tables/resettlement.h"

#include "collectives/communicator/agreement.h"
#include "ps/client/row_batch.h"
#include "ps/server/handed_part.h"
#include "ps/table/rules.h"
#include "tables/run.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace dtrain::tables {

using collectives::Agreement;
using collectives::Kind;

Resettlement::~Resettlement() {
    if (!parts_.empty()) node_.give_back(name_, std::move(parts_));
}

Status Resettlement::agree(const ps::TableParams &params, uint32_t servers, int64_t deadline_ns) {
    const ps::Node::Held held = node_.held(name_, params);
    enum { parts, displaced, unfit, counts };
    uint64_t sums[counts] = {held.parts, held.displaced, held.unfit};
    double most[] = {double(held.updates), held.rate}; // at most 2^53 updates
    const auto combine = [&](void *data, size_t count, uint32_t dtype, uint32_t op) {
        return comm_.run_until({.kind = Kind::allreduce,
                                .send = data,
                                .recv = data,
                                .count = count,
                                .dtype = dtype,
                                .op = op},
                               deadline_ns);
    };
    if (Status s = combine(sums, counts, DTRAIN_U64, DTRAIN_SUM); s != DTRAIN_OK) return s;
    if (Status s = combine(most, 2, DTRAIN_F64, DTRAIN_MAX); s != DTRAIN_OK) return s;
    needed_ = sums[displaced] > 0 && sums[parts] == servers && sums[unfit] == 0;
    updates_ = uint64_t(most[0]);
    rate_ = most[1];
    return DTRAIN_OK;
}

void Resettlement::take() {
    if (needed_) parts_ = node_.take_held(name_);
}

Status Resettlement::set(const SharedTable &table, int64_t deadline_ns) const {
    const ps::TableParams &params = table.table->params;
    const auto post = [&](ps::Transfer &&transfer) {
        return run(table, std::move(transfer), comm_.timeout_until(deadline_ns));
    };
    if (comm_.rank() == 0) {
        ps::Transfer updates;
        updates.kind = ps::RequestKind::set_updates;
        updates.argument = updates_;
        if (Status s = post(std::move(updates)); s != DTRAIN_OK) return s;
        ps::Transfer rate;
        rate.kind = ps::RequestKind::set_rate;
        rate.argument = std::bit_cast<uint64_t>(rate_);
        if (has_rate(params) && valid_rate(params, rate_))
            if (Status s = post(std::move(rate)); s != DTRAIN_OK) return s;
    }
    for (const auto &part : parts_)
        for (const ps::HandedPiece &piece : part->pieces) {
            ps::Transfer transfer;
            transfer.kind = piece.kind(params);
            transfer.argument = piece.state();
            transfer.range = piece.range;
            if (is_sparse(params))
                transfer.rows = std::make_shared<ps::RowBatch>(
                    *table.table,
                    ps::RowBatch::Call{transfer.kind, piece.keys.data(), piece.keys.size(),
                                       piece.numbers.data(), nullptr, piece.state()});
            else
                transfer.send = piece.numbers.data();
            if (Status s = post(std::move(transfer)); s != DTRAIN_OK) return s;
        }
    return DTRAIN_OK;
}

Status Resettlement::settle(const SharedTable &table, int64_t deadline_ns) {
    Agreement settled(cluster::CallKind::table_create);
    const Status own = set(table, deadline_ns);
    settled.check(own == DTRAIN_OK ? own
                                   : fail_within(own,
                                                 "table \"%s\": setting what it had before the "
                                                 "reform",
                                                 name_.c_str()));
    // The extra time lets a rank whose own deadline has passed still tell the others.
    const int64_t told_by =
        deadline_ns == INT64_MAX ? deadline_ns : deadline_ns + cluster::Session::goodbye_ns;
    const Status s = settled.reach(comm_, told_by);
    if (s == DTRAIN_OK) parts_.clear();
    return s;
}

} // namespace dtrain::tables
