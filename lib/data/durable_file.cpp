// Writes, syncs and renames a file, and reads small files.
// SPDX-License-Identifier: Apache-2.0
#include "data/durable_file.h"

#include "base/output_file.h"
#include "data/input_file.h"

#include <algorithm>
#include <cerrno>

namespace dtrain::data {
namespace {

constexpr size_t largest_write = size_t(1) << 30; // bytes; Linux writes at most 2 GiB per call

} // namespace

Status DurableFile::failed(const char *what, int64_t error) const {
    return fail_errno(int(-error), "cannot %s \"%s\"", what, temporary_.c_str());
}

Status DurableFile::open(const std::string &path) {
    path_ = path;
    temporary_ = path + ".tmp";
    fd_ = disk_.create(temporary_.c_str());
    if (fd_ >= 0) return DTRAIN_OK;
    Status s = failed("create", fd_);
    temporary_.clear();
    return s;
}

Status DurableFile::write(const void *data, size_t size) {
    const auto *bytes = static_cast<const char *>(data);
    while (size > 0) {
        const int64_t n = disk_.write(fd_, bytes, std::min(size, largest_write));
        if (n <= 0) return failed("write", n < 0 ? n : -EIO);
        bytes += n;
        size -= size_t(n);
    }
    return DTRAIN_OK;
}

Status DurableFile::commit() {
    Status s = DTRAIN_OK;
    if (int error = disk_.sync(fd_); error < 0) s = failed("sync", error);
    const int closed = disk_.close(fd_);
    fd_ = -1; // closed, whatever close() returns
    if (s == DTRAIN_OK && closed < 0) s = failed("close", closed);
    if (s == DTRAIN_OK)
        if (int error = disk_.rename(temporary_.c_str(), path_.c_str()); error < 0)
            s = failed("rename", error);
    if (s != DTRAIN_OK) {
        discard();
        return s;
    }
    temporary_.clear();
    const std::string folder = folder_of(path_);
    if (int error = disk_.sync_folder(folder.c_str()); error < 0)
        return fail_errno(-error, "cannot sync the folder \"%s\"", folder.c_str());
    return DTRAIN_OK;
}

void DurableFile::discard() {
    if (fd_ >= 0) disk_.close(fd_);
    fd_ = -1;
    if (!temporary_.empty()) disk_.remove(temporary_.c_str());
    temporary_.clear();
}

Status read_small_file(const std::string &path, size_t limit, std::string &content) {
    InputFile file;
    if (Status s = file.open(path); s != DTRAIN_OK) return s;
    if (file.remaining() > limit)
        return fail(DTRAIN_ERR_LIMIT, "the file has %llu bytes; at most %zu are allowed",
                    static_cast<unsigned long long>(file.remaining()), limit);
    const auto size = size_t(file.remaining());
    const uint8_t *data = nullptr;
    if (size > 0)
        if (Status s = file.take(size, data); s != DTRAIN_OK) return s;
    content.assign(reinterpret_cast<const char *>(data), size);
    return DTRAIN_OK;
}

} // namespace dtrain::data
