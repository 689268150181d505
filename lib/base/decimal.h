// Numbers as texts that read as the same number, whatever the locale.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace dtrain {

// The shortest such text, as std::to_chars() writes it. Without that one the library is 160 KB
// smaller.
std::string decimal_text(double number);

} // namespace dtrain
