// Writes files for people to read, in folders where other users may write, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/fd.h"
#include "base/status.h"

#include <string>

namespace dtrain {

// Opens a new file in place of the one with this name; it never follows a link, nor writes to a
// file that somebody else has placed there. (A device or a pipe is opened as it is.) The error text
// does not name the file.
Status replace_file(const std::string &path, Fd &fd);

// Writes a file that appears under its name only when it is complete. The error text does not name
// the file.
Status write_whole_file(const std::string &path, const std::string &content);

} // namespace dtrain
