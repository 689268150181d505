// Parses TensorFlow's cluster description, the value of TF_CONFIG.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace dtrain::cluster {

struct TfConfig {
    enum class Task { chief, worker, ps, evaluator };
    using Addresses = std::map<int32_t, std::string>; // by index
    Task task = Task::chief;
    int32_t index = 0;
    Addresses chief, workers, ps; // "master" counts as chief; all empty: a job of one process
    bool sparse = false;          // "worker" lists only some of them, so their number is unknown
};

// DTRAIN_ERR_CONFIG: the text says what is wrong with it.
Status parse_tf_config(std::string_view text, TfConfig &out);

} // namespace dtrain::cluster
