// Requests for rows of a sparse table.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server_table.h"

#include <algorithm>

namespace dtrain::ps {

ServerTable::Answer ServerTable::check_rows(const RequestHeader &header, const void *payload,
                                            uint64_t bytes) const {
    const uint64_t with_key = sizeof(uint64_t) + rows_->value_bytes();
    if (header.count > chunk_bytes / with_key) return {Reason::bad_size, {bytes, chunk_bytes}};
    const bool push = header.kind == RequestKind::push_rows;
    const uint64_t due = header.count * (push ? with_key : sizeof(uint64_t));
    if (bytes != due) return {Reason::bad_size, {bytes, due}};
    if (key_partition_.servers() == 1) return {};
    const auto *keys = static_cast<const uint64_t *>(payload);
    auto elsewhere = [&](uint64_t key) {
        return key_partition_.server_of(key) != identity_.server;
    };
    const uint64_t *wrong = std::find_if(keys, keys + header.count, elsewhere);
    if (wrong == keys + header.count) return {};
    return {Reason::wrong_server, {*wrong, key_partition_.server_of(*wrong)}};
}

ServerTable::Answer ServerTable::take_rows(const RequestHeader &header, const void *payload) {
    const auto *keys = static_cast<const uint64_t *>(payload);
    const void *g = keys + header.count;
    Reason reason = identity_.params.consistency == DTRAIN_BSP
                        ? rows_->collect(header.clock, keys, header.count, g)
                        : rows_->push(keys, header.count, g, (header.flags & begins_push) != 0);
    const uint64_t used = rows_->memory(), limit = rows_->limit();
    return {reason, {used, limit - std::min(used, limit)}};
}

ServerTable::Answer ServerTable::attach_rows(const RequestHeader &header, const void *keys,
                                             Response &response) {
    const uint64_t bytes = header.count * rows_->value_bytes();
    auto values = rows_->gather(static_cast<const uint64_t *>(keys), header.count);
    if (values == nullptr) return {Reason::no_memory, {bytes, 0}};
    response.header.count = header.count;
    response.payload = values->at(0);
    response.bytes = bytes;
    response.hold = std::move(values);
    return {};
}

} // namespace dtrain::ps
