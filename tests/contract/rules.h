// The update rules of dtrain.h that segments and all kinds of tables may have, those that are added
// later, too: all but DC_SGD and FUNCTION.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain.h"
#include "dtrain_names.h"

#include <algorithm>
#include <array>
#include <cstdint>

constexpr auto common_rules = [] {
#define DTRAIN_NUMBER(NAME, name) DTRAIN_RULE_##NAME,
    constexpr auto all = std::to_array<uint32_t>({DTRAIN_EACH_RULE(DTRAIN_NUMBER)});
    std::array<uint32_t, all.size() - 2> common = {};
    std::copy_if(all.begin(), all.end(), common.begin(), [](uint32_t rule) {
        return rule != DTRAIN_RULE_DC_SGD && rule != DTRAIN_RULE_FUNCTION;
    });
    return common;
}();
