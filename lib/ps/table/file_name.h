// A table's name in the names and the metadata of files.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace dtrain::ps {

// What is not [A-Za-z0-9_.-] becomes %XX.
std::string escaped(const std::string &name);

} // namespace dtrain::ps
