// Reads the secret that the members of a job share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/options.h"

#include <string>

namespace dtrain {

// The value of option secret, else what the file of option secret.file holds; "" if neither is set.
Status read_secret(const Options &options, std::string &secret);

} // namespace dtrain
