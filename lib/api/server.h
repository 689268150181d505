// The struct behind a server's handle.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/handles.h"
#include "ps/node/node.h"

struct dtrain_server : dtrain::api::Child {
    using Child::Child;
    std::shared_ptr<dtrain::ps::Node> node;
};
