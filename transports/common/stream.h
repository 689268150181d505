// Opens text files for reading and folders for listing; their descriptors are recorded
// (descriptors.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/descriptors.h"

#include <cstdio>
#include <dirent.h>
#include <memory>

namespace dtrain::tp {

struct StreamEnd {
    void operator()(FILE *file) const {
        Descriptors::unmark(fileno(file));
        std::fclose(file);
    }
};
using Stream = std::unique_ptr<FILE, StreamEnd>;

// Returns an empty Stream and sets errno on failure.
inline Stream read_stream(const char *path) {
    const int fd = Descriptors::own(::open(path, O_RDONLY | O_CLOEXEC));
    FILE *const file = fd < 0 ? nullptr : fdopen(fd, "r");
    if (fd >= 0 && file == nullptr) Descriptors::close(fd);
    return Stream(file);
}

struct FolderEnd {
    void operator()(DIR *folder) const {
        Descriptors::unmark(dirfd(folder));
        closedir(folder);
    }
};
using Folder = std::unique_ptr<DIR, FolderEnd>;

// Returns an empty Folder and sets errno on failure.
inline Folder open_folder(const char *path) {
    const int fd = Descriptors::own(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *const folder = fd < 0 ? nullptr : fdopendir(fd);
    if (fd >= 0 && folder == nullptr) Descriptors::close(fd);
    return Folder(folder);
}

} // namespace dtrain::tp
