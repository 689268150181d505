// Describes call records in words, for errors that compare the calls of two ranks.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "wire/call_record.h"

#include <string>

namespace dtrain::cluster {

using wire::CallKind;
using wire::CallRecord;

const char *name(CallKind kind);                // "all_reduce"
std::string describe(const CallRecord &record); // "broadcast f32[10] root 0"

} // namespace dtrain::cluster
