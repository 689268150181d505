// A table's handle.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "api/operation.h"
#include "ps/client_table.h"
#include "ps/node.h"

struct dtrain_table : dtrain::api::Child {
    using Child::Child;
    std::shared_ptr<dtrain::ps::Node> node;
    dtrain::ps::ClientTable *table = nullptr; // the node's client owns it
};
