// A folder of checkpoints, and the tables that go there.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/ranks.h"
#include "temporary_folder.h"

namespace checkpoints {

inline constexpr uint64_t length = 10007;

struct Folder : TemporaryFolder {
    ranks::Options options(const char *restore = "no") const {
        return {{"checkpoint.directory", name + "/deep"},
                {"checkpoint.keep", "2"},
                {"checkpoint.restore", restore},
                {"log.level", "error"}};
    }
};

inline dtrain_table_t *make(dtrain_comm_t *comm, const char *name, uint32_t consistency,
                            uint32_t rule) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = length;
    params.rule = rule;
    params.consistency = consistency;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, name, &params, &table));
    return table;
}

inline dtrain_table_t *make_rows(dtrain_comm_t *comm) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.dim = 3;
    params.rule = DTRAIN_RULE_ADAGRAD;
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, "rows", &params, &table));
    return table;
}

inline std::vector<float> pulled(dtrain_table_t *table) {
    std::vector<float> values(length);
    OK(dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
    return values;
}

inline void push(dtrain_table_t *table, float g) {
    const std::vector<float> values(length, g);
    OK(dtrain_table_push(table, 0, length, values.data(), nullptr, nullptr));
}

inline void barrier(dtrain_comm_t *comm) { OK(dtrain_barrier(comm, nullptr, nullptr)); }

inline bool says(const char *text) { return ranks::last_error().find(text) != std::string::npos; }

} // namespace checkpoints
