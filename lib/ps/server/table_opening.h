// A table in an accelerator's memory before it is there.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/device_shard.h"
#include "ps/table/protocol.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::ps {

// What comes of making a storage: it, and the stage on which it was made, or why there is none.
struct DeviceMade {
    Status status = DTRAIN_OK;
    std::string why;
    std::shared_ptr<DeviceStage> stage;
    std::unique_ptr<DeviceShard> shard;
};

struct TableOpening {
    RequestHeader first; // the create request that the table is made by
    std::string name;
    TableParams params;
    std::vector<RequestHeader> early; // create and destroy requests that came meanwhile
    std::optional<DeviceMade> made;
};

} // namespace dtrain::ps
