// The struct behind a server's handle.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/handles.h"
#include "ps/node/node.h"

struct dtrain_server : dtrain::api::Child {
    using Child::Child;
    // Replaced when the server follows an elastic job to its next generation. The last one is kept
    // until its workers have left it: if the next does not form on them, they go on from there.
    std::shared_ptr<dtrain::ps::Node> node, last;
    std::mutex mutex; // guards both
    std::shared_ptr<dtrain::ps::Node> current() {
        std::lock_guard lock(mutex);
        return node;
    }
    std::shared_ptr<dtrain::ps::Node> previous() {
        std::lock_guard lock(mutex);
        return last;
    }
};
