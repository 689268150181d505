// Writes files in folders where other users may write, too, and syncs folders.
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

// Writes a file that appears under its name only when it is complete, even if the power goes. The
// error text does not name the file.
Status write_whole_file(const std::string &path, const std::string &content);

// Makes the names in a folder durable, if its file system can do so. Returns 0 or -errno.
int sync_folder(const std::string &path);
std::string folder_of(const std::string &path); // "a/b" of "a/b/c"

} // namespace dtrain
