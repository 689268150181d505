// The struct behind a server's handle.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/handles.h"
#include "ps/node/node.h"

struct dtrain_server : dtrain::api::Child {
    using Child::Child;
    // Replaced when the server follows an elastic job to its next generation.
    std::shared_ptr<dtrain::ps::Node> node;
    std::mutex mutex; // guards it
    std::shared_ptr<dtrain::ps::Node> current() {
        std::lock_guard lock(mutex);
        return node;
    }
};
