// Creates the storage of a table, dense or sparse.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/device_shard.h"
#include "ps/storage/shard.h"
#include "ps/storage/sparse_shard.h"

namespace dtrain::ps {

uint64_t Storage::bytes_needed(const TableParams &params, const Part &part, uint32_t workers) {
    if (is_sparse(params)) return 0;
    return is_on_device(params) ? DeviceShard::bytes_needed(params, part.count(), workers)
                                : Shard::bytes_needed(params, part.count(), workers);
}

std::unique_ptr<Storage> Storage::create(const TableParams &params, const Part &part,
                                         const dtrain_function_t *function, uint32_t workers) {
    if (is_sparse(params)) return std::make_unique<SparseShard>(params, function, workers);
    return Shard::create(params, part, function, workers);
}

} // namespace dtrain::ps
