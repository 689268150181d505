// The form of a table's name in file names and in the metadata of files.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace dtrain::ps {

// Replaces every byte outside of [A-Za-z0-9_.-] by %XX.
std::string escaped(const std::string &name);

} // namespace dtrain::ps
