// Tables of all kinds for the targets of the table protocol.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/table/table_params.h"

namespace dtrain::fuzz {

inline constexpr uint8_t table_kinds = 16;

inline ps::TableParams table_of(uint8_t kind) {
    ps::TableParams params;
    params.dtype = DTRAIN_F32;
    params.length = 10;
    switch (kind % table_kinds) {
    case 1: params.rule = DTRAIN_RULE_ADAM; break;
    case 2: params.consistency = DTRAIN_BSP, params.aggregate = DTRAIN_AVG; break;
    case 3: params.consistency = DTRAIN_SSP, params.staleness = 2; break;
    case 4:
        params.consistency = DTRAIN_QUORUM, params.quorum = 1, params.aggregate = DTRAIN_AVG;
        break;
    case 5: params.consistency = DTRAIN_BSP, params.reproducible = 1; break;
    case 6: params.length = 0, params.dim = 3; break;
    case 7:
        params.length = 0, params.dim = 3, params.rule = DTRAIN_RULE_ADAGRAD;
        params.consistency = DTRAIN_BSP, params.max_bytes = 4096;
        break;
    case 8: params.length = 0, params.dim = 2, params.wire_dtype = DTRAIN_BF16; break;
    case 9: params.wire_dtype = DTRAIN_F16, params.not_finite = DTRAIN_NOT_FINITE_REFUSE; break;
    case 10: params.storage_dtype = DTRAIN_I8, params.row_length = 5; break;
    case 11: params.dtype = DTRAIN_I64; break;
    case 12: params.rule = DTRAIN_RULE_FUNCTION, params.function = "add"; break;
    case 13:
        params.length = 0, params.dim = 2, params.consistency = DTRAIN_BSP;
        params.rule = DTRAIN_RULE_FUNCTION, params.function = "add";
        break;
    case 14:
        params.rule = DTRAIN_RULE_FUNCTION, params.function = "keeps", params.row_length = 5;
        break;
    case 15: params.rule = DTRAIN_RULE_FUNCTION, params.function = "none"; break;
    default: break;
    }
    return params;
}

} // namespace dtrain::fuzz
