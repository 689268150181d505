// A dense and a sparse table that a restore fills with one number, and what servers have of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/placement/placement_map.h"
#include "ps/server/server.h"
#include "ps/storage/row_image.h"
#include "ps/storage/shard_image.h"

#include "check.h"

#include <cstring>
#include <map>
#include <vector>

class RestoreTables {
    using TableParams = dtrain::ps::TableParams;

  public:
    static constexpr uint32_t count = 2;

    // observer: a worker that does nothing else than pull().
    RestoreTables(uint32_t servers, uint32_t observer)
        : partition_(make_partition(dense(), servers)),
          keys_(make_key_partition(sparse(), servers)), rows_bytes_(servers), observer_(observer) {}

    static TableParams params(uint32_t table) { return table == 0 ? dense() : sparse(); }
    uint64_t rows_bytes(uint32_t server) const { return rows_bytes_[server]; } // when it was read

    // As if a disk had read a part full of the step.
    void read(dtrain::ps::ArchiveJob &job, const dtrain::ps::Reserve &reserve) {
        const uint64_t value = job.request.argument;
        if (job.image->as_rows() != nullptr) return read_rows(job, value, reserve);
        dtrain::ps::ShardImage &image = *job.image->as_shard();
        const uint64_t items = image.part.count(), bytes = items * sizeof value;
        if (reserve(bytes) < bytes) job.status = DTRAIN_ERR_LIMIT;
        assert_true(image.allocate());
        for (uint64_t i = 0; i < items; ++i) std::memcpy(image.values.at(i), &value, sizeof value);
    }

    // All values of the table there, without a network.
    std::vector<uint64_t> pull(dtrain::ps::Server &at, uint32_t server, uint32_t table) {
        using dtrain::ps::RequestKind;
        const std::vector<uint64_t> keys = table == 0 ? std::vector<uint64_t>{} : keys_of(server);
        const dtrain::ps::Part part = partition_.part(server);
        dtrain::ps::RequestHeader header;
        header.kind = table == 0 ? RequestKind::pull : RequestKind::pull_rows;
        header.table = table;
        header.worker = observer_;
        header.first = table == 0 ? part.range(0).first : 0;
        header.count = table == 0 ? part.range(0).count : keys.size();
        if (header.count == 0) return {};
        header.sequence = ++observed_[{server, table}];
        dtrain::ps::Responses out;
        at.on_request(observer_, header, keys.data(), keys.size() * sizeof keys[0], out);
        std::vector<uint64_t> values(header.count);
        assert_int_equal(out.at(0).bytes, values.size() * sizeof values[0]);
        std::memcpy(values.data(), out[0].payload, out[0].bytes);
        return values;
    }

  private:
    static TableParams dense() {
        TableParams params;
        params.length = 96; // a range for each of up to 3 servers
        params.dtype = DTRAIN_U64;
        return params;
    }
    static TableParams sparse() {
        TableParams params;
        params.dim = 1;
        params.dtype = DTRAIN_U64;
        params.placement.policy = DTRAIN_PLACE_HASH;
        return params;
    }
    std::vector<uint64_t> keys_of(uint32_t server) const {
        std::vector<uint64_t> keys;
        for (uint64_t key = 1; key <= 20; ++key)
            if (keys_.server_of(key) == server) keys.push_back(key);
        return keys;
    }

    void read_rows(dtrain::ps::ArchiveJob &job, uint64_t value,
                   const dtrain::ps::Reserve &reserve) {
        dtrain::ps::RowImage &image = *job.image->as_rows();
        dtrain::ps::RowStore &store = image.store;
        const std::vector<uint64_t> keys = keys_of(job.server);
        auto fill = [&](uint64_t, char *row) {
            std::memset(row, 0, image.layout.bytes);
            std::memcpy(row, &value, sizeof value);
        };
        for (size_t made = 0; made < keys.size();) {
            made += store.obtain(&keys[made], keys.size() - made, fill, [](size_t, char *) {});
            if (made == keys.size() || image.make_room(reserve) == DTRAIN_OK) continue;
            job.status = DTRAIN_ERR_LIMIT;
            return;
        }
        rows_bytes_[job.server] = store.memory();
    }

    const dtrain::ps::Partition partition_;
    const dtrain::ps::KeyPartition keys_;
    std::vector<uint64_t> rows_bytes_; // by server
    const uint32_t observer_;
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> observed_; // sequence numbers
};
