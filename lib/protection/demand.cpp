// Reads the option.
// SPDX-License-Identifier: Apache-2.0
#include "protection/demand.h"

namespace dtrain::protection {
namespace {

struct Row {
    std::string_view value;
    Demand demand;
};
constexpr Row rows[] = {
    {"auto", {Level::encrypted, {Level::integrity, Level::none}}},
    {"none", {Level::none, Level::none}},
    {"integrity", {Level::encrypted, Level::integrity}},
    {"encrypted", {Level::encrypted, Level::encrypted}},
};

} // namespace

Status read_demand(const Options &options, bool has_secret, Demand &out) {
    const std::string_view value = options.text("protection");
    out = {};
    if (!has_secret && value != "auto" && value != "none")
        return fail(DTRAIN_ERR_CONFIG,
                    "option protection=%.*s needs a secret, from which keys are made: set option "
                    "secret.file (or secret) to the same in all processes of the job",
                    int(value.size()), value.data());
    if (!has_secret) return DTRAIN_OK;
    for (const Row &row : rows)
        if (row.value == value) out = row.demand;
    return DTRAIN_OK;
}

} // namespace dtrain::protection
