// Requests for rows of a sparse table.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/server_table.h"

#include "device/finite.h"
#include <algorithm>
#include <utility>

namespace dtrain::ps {

ServerTable::Answer ServerTable::check_rows(const RequestHeader &header, const void *payload,
                                            uint64_t bytes) const {
    const Item item = item_of(identity_.params, header.kind, header.argument);
    if (item.bytes == 0) return {Reason::unknown_state, {header.argument, 0}};
    const bool keys_alone = header.kind == RequestKind::keep_rows; // no rows, not even in answers
    const uint64_t with_key = sizeof(uint64_t) + (keys_alone ? 0 : item.bytes);
    if (header.count > chunk_bytes / with_key) return {Reason::bad_size, {bytes, chunk_bytes}};
    const bool carries = has_trait(header.kind, Trait::carries);
    const uint64_t due =
        header.count * sizeof(uint64_t) +
        (carries ? bytes_on_wire(identity_.params, header.kind, item, header.count) : 0);
    if (bytes != due) return {Reason::bad_size, {bytes, due}};
    if (partition_.servers() == 1) return {};
    const auto *keys = static_cast<const uint64_t *>(payload);
    const uint64_t own = partition_.with_lookup([&](auto server_of) {
        uint64_t i = 0;
        while (i < header.count && server_of(keys[i]) == identity_.server) i++;
        return i;
    });
    if (own == header.count) return {};
    return {Reason::wrong_server, {keys[own], partition_.server_of(keys[own])}};
}

ServerTable::Answer ServerTable::take_rows(const RequestHeader &header, const void *payload,
                                           Answered::Entry &entry) {
    const auto *keys = static_cast<const uint64_t *>(payload);
    const void *g = values_of(header, keys + header.count);
    if (identity_.params.not_finite != DTRAIN_NOT_FINITE_TAKE) {
        const uint64_t count = header.count * identity_.params.dim;
        const uint64_t at = device::first_not_finite(g, count, computed_dtype(identity_.params));
        if (at < count) return spoilt(header, keys[at / identity_.params.dim], entry);
    }
    return after_rows(collects(identity_.params)
                          ? rows_->collect(sum_of(header), keys, header.count, g, weight_of(header),
                                           header.worker)
                          : rows_->push(keys, header.count, g, (header.flags & begins_push) != 0));
}

ServerTable::Answer ServerTable::change_rows(const RequestHeader &header, const void *payload) {
    const auto *keys = static_cast<const uint64_t *>(payload);
    const void *rows = keys + header.count; // for kinds that carry rows
    switch (header.kind) {
    case RequestKind::set_rows:
        return after_rows(rows_->set(keys, header.count, values_of(header, rows)));
    case RequestKind::set_state_rows:
        return after_rows(rows_->set_state(header.argument, keys, header.count, rows));
    case RequestKind::erase_rows: rows_->erase(keys, header.count); return {};
    default: return {Reason::none, {rows_->size(), 0}};
    }
}

// Makes an answer with the numbers for the text of a limit.
ServerTable::Answer ServerTable::after_rows(Reason reason) {
    if (reason == Reason::told) return failure_told();
    const uint64_t used = rows_->memory(), limit = rows_->limit();
    return {reason, {used, limit - std::min(used, limit)}};
}

ServerTable::Answer ServerTable::attach_rows(const RequestHeader &header, const void *keys,
                                             Response &response) {
    const Item item = item_of(identity_.params, header.kind, header.argument);
    const auto *asked = static_cast<const uint64_t *>(keys);
    std::shared_ptr<const Buffer> rows;
    if (has_trait(header.kind, Trait::state)) {
        rows = rows_->gather_state(header.argument, asked, header.count);
    } else if (rows_->transforms()) {
        Reason reason = rows_->transform(asked, header.count, rows);
        if (reason == Reason::told) return failure_told();
    } else {
        rows = rows_->gather(asked, header.count);
    }
    response.bytes = bytes_on_wire(identity_.params, header.kind, item, header.count);
    if (rows == nullptr) return {Reason::no_memory, {std::exchange(response.bytes, 0), 0}};
    response.header.count = header.count;
    response.payload = rows->at(0);
    response.hold = std::move(rows);
    return {};
}

} // namespace dtrain::ps
