// Files for people, written where other users may write, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "base/status.h"

#include <string>

namespace dtrain {

// Opens a new file in place of what has this name; never what a link points to, nor a file that
// somebody else has laid there. (A device or a pipe is opened as it is.) The text does not name it.
Status replace_file(const std::string &path, Fd &fd);

// Writes a file that appears under its name when it is whole. The text does not name it.
Status write_whole_file(const std::string &path, const std::string &content);

} // namespace dtrain
