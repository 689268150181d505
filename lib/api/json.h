// What the texts in JSON share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace dtrain::api {

std::string quoted(std::string_view text); // as a string of JSON; control characters become spaces

} // namespace dtrain::api
