// The checks of sizes, ranges and keys.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/request_check.h"

#include "ps/table/item.h"

namespace dtrain::ps {

Answer RequestCheck::check(const RequestHeader &header, const void *payload, uint64_t bytes) const {
    if (header.partition != partition_.version())
        return {Reason::wrong_partition, {header.partition, partition_.version()}};
    const bool about_rows = has_trait(header.kind, Trait::rows);
    const bool ranged = has_trait(header.kind, Trait::ranged);
    if ((ranged || about_rows) && about_rows != is_sparse(params_))
        return {Reason::wrong_kind, {0, 0}};
    if (!ranged) return {};
    return about_rows ? check_rows(header, payload, bytes) : check_range(header, bytes);
}

Answer RequestCheck::check_range(const RequestHeader &header, uint64_t bytes) const {
    Item item = item_of(params_, header.kind, header.argument);
    if (item.bytes == 0) return {Reason::unknown_state, {header.argument, 0}};
    bool whole = header.first % item.elements == 0 && header.count % item.elements == 0;
    if (!whole || !part_.contains({header.first, header.count}))
        return {Reason::bad_range, {header.first, header.count}};
    if (header.count / item.elements > chunk_bytes / item.bytes)
        return {Reason::bad_size, {item.bytes_of(header.count), chunk_bytes}};
    const bool sends = has_trait(header.kind, Trait::sends);
    const uint64_t due = sends ? bytes_on_wire(params_, header.kind, item, header.count) : 0;
    if (bytes != due) return {Reason::bad_size, {bytes, due}};
    return {};
}

Answer RequestCheck::check_rows(const RequestHeader &header, const void *payload,
                                uint64_t bytes) const {
    const Item item = item_of(params_, header.kind, header.argument);
    if (item.bytes == 0) return {Reason::unknown_state, {header.argument, 0}};
    const bool keys_alone = header.kind == RequestKind::keep_rows; // no rows, not even in answers
    const uint64_t with_key = sizeof(uint64_t) + (keys_alone ? 0 : item.bytes);
    if (header.count > chunk_bytes / with_key) return {Reason::bad_size, {bytes, chunk_bytes}};
    const bool carries = has_trait(header.kind, Trait::carries);
    const uint64_t due = header.count * sizeof(uint64_t) +
                         (carries ? bytes_on_wire(params_, header.kind, item, header.count) : 0);
    if (bytes != due) return {Reason::bad_size, {bytes, due}};
    if (partition_.servers() == 1) return {};
    const auto *keys = static_cast<const uint64_t *>(payload);
    const uint64_t own = partition_.with_lookup([&](auto server_of) {
        uint64_t i = 0;
        while (i < header.count && server_of(keys[i]) == server_) i++;
        return i;
    });
    if (own == header.count) return {};
    return {Reason::wrong_server, {keys[own], partition_.server_of(keys[own])}};
}

} // namespace dtrain::ps
