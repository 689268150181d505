// Replaces files without following links, writes files that appear only when complete, and syncs
// folders.
// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dtrain {
namespace {

constexpr int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW;

// Fails when a file of this name exists.
Fd create(const std::string &path) {
    return Fd(open(path.c_str(), flags | O_CREAT | O_EXCL, 0644));
}

// A name beside `path` that nobody can predict.
std::string temporary_name(const std::string &path) {
    uint64_t number = 0;
    while (getrandom(&number, sizeof number, 0) != ssize_t(sizeof number)) {
    }
    char suffix[32];
    std::snprintf(suffix, sizeof suffix, ".%016" PRIx64, number);
    return path + suffix;
}

Status write_all(const Fd &fd, const std::string &content) {
    for (size_t done = 0; done < content.size();) {
        const ssize_t n = write(fd.get(), content.data() + done, content.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail_errno(n < 0 ? errno : EIO, "writing it");
        done += size_t(n);
    }
    return DTRAIN_OK;
}

} // namespace

Status replace_file(const std::string &path, Fd &fd) {
    struct stat there {};
    const bool exists = lstat(path.c_str(), &there) == 0;
    if (exists && S_ISLNK(there.st_mode))
        return fail(DTRAIN_ERR_IO, "it is a symbolic link, which is not followed; name the file "
                                   "that it points to");
    const bool regular = exists && S_ISREG(there.st_mode);
    if (regular && unlink(path.c_str()) != 0 && errno != ENOENT)
        return fail_errno(errno, "removing the old file");
    fd = exists && !regular ? Fd(open(path.c_str(), flags)) : create(path);
    return fd ? DTRAIN_OK : fail_errno(errno, "opening it");
}

Status write_whole_file(const std::string &path, const std::string &content) {
    const std::string fresh = temporary_name(path);
    Fd fd = create(fresh);
    if (!fd) return fail_errno(errno, "creating %s", fresh.c_str());
    Status s = write_all(fd, content);
    if (s == DTRAIN_OK && fsync(fd.get()) != 0) s = fail_errno(errno, "syncing it");
    if (fd.close() != 0 && s == DTRAIN_OK) s = fail_errno(errno, "closing it");
    if (s == DTRAIN_OK && rename(fresh.c_str(), path.c_str()) != 0)
        s = fail_errno(errno, "renaming %s", fresh.c_str());
    if (s != DTRAIN_OK) unlink(fresh.c_str());
    if (s == DTRAIN_OK) (void)sync_folder(folder_of(path)); // some folders can only be written to
    return s;
}

int sync_folder(const std::string &path) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return -errno;
    return fsync(fd.get()) < 0 && errno != EINVAL ? -errno : 0;
}

std::string folder_of(const std::string &path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace dtrain
