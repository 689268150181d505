// Defers the cancellation of a thread; shared with the transports.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/uncancelled.h"

namespace dtrain {

using tp::Uncancelled;

} // namespace dtrain
