// Frames records, and writes them through a buffer.
// SPDX-License-Identifier: Apache-2.0
#include "data/writer.h"

#include "base/output_file.h"
#include "data/frame.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dtrain::data {
namespace {

constexpr size_t written_at_once = 256 << 10;

// Creates a file like mkostemp(), but with the usual permissions of the process's new files. On
// failure it returns an empty Fd and sets errno.
Fd create_beside(const std::string &path, std::string &name) {
    for (int attempt = 0; attempt < 100; attempt++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) < 0) return Fd();
        char suffix[16];
        std::snprintf(suffix, sizeof suffix, ".tmp%08x", random);
        name = path + suffix;
        Fd fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (fd || errno != EEXIST) return fd;
    }
    return Fd();
}

} // namespace

Status Writer::open(const char *path) {
    struct stat st;
    // Reported now rather than when everything is written.
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return fail_errno(EISDIR, "cannot create \"%s\"", path);
    path_ = path;
    std::string name;
    fd_ = create_beside(path_, name);
    if (!fd_) return fail_errno(errno, "cannot create \"%s\" (for \"%s\")", name.c_str(), path);
    temporary_ = std::move(name);
    buffer_.reserve(written_at_once);
    return DTRAIN_OK;
}

Status Writer::append(std::span<const uint8_t> record) {
    if (failure_ != DTRAIN_OK) return fail(failure_, "%s", failure_text_.c_str());
    uint8_t header[header_size], footer[checksum_size];
    store_le(header, record.size(), length_size);
    store_le(header + length_size, masked_crc(header, length_size), checksum_size);
    store_le(footer, masked_crc(record.data(), record.size()), checksum_size);
    Status s = put(header, sizeof header);
    if (s == DTRAIN_OK) s = put(record.data(), record.size());
    if (s == DTRAIN_OK) s = put(footer, sizeof footer);
    if (s != DTRAIN_OK) {
        failure_ = s;
        failure_text_ = error_text();
    }
    return s;
}

Status Writer::close() {
    Status s = failure_;
    if (s == DTRAIN_OK)
        s = commit();
    else
        fail(s, "%s", failure_text_.c_str());
    discard();
    return s;
}

void Writer::disown() {
    temporary_.clear();
    discard();
}

Status Writer::put(const void *data, size_t size) {
    if (buffer_.size() + size > written_at_once)
        if (Status s = flush(); s != DTRAIN_OK) return s;
    const auto *bytes = static_cast<const uint8_t *>(data);
    if (size > written_at_once) return write_all(bytes, size);
    buffer_.insert(buffer_.end(), bytes, bytes + size);
    return DTRAIN_OK;
}

Status Writer::flush() {
    Status s = write_all(buffer_.data(), buffer_.size());
    buffer_.clear();
    return s;
}

Status Writer::write_all(const uint8_t *data, size_t size) {
    while (size > 0) {
        const ssize_t n = write(fd_.get(), data, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(errno, "cannot write \"%s\"", temporary_.c_str());
        data += n;
        size -= size_t(n);
    }
    return DTRAIN_OK;
}

Status Writer::commit() {
    if (Status s = flush(); s != DTRAIN_OK) return s;
    if (fsync(fd_.get()) != 0) return fail_errno(errno, "cannot sync \"%s\"", temporary_.c_str());
    if (fd_.close() != 0) return fail_errno(errno, "cannot close \"%s\"", temporary_.c_str());
    if (rename(temporary_.c_str(), path_.c_str()) != 0)
        return fail_errno(errno, "cannot rename \"%s\" to \"%s\"", temporary_.c_str(),
                          path_.c_str());
    temporary_.clear();
    (void)sync_folder(folder_of(path_)); // some folders can only be written to
    return DTRAIN_OK;
}

void Writer::discard() {
    fd_.reset();
    if (!temporary_.empty()) unlink(temporary_.c_str());
    temporary_.clear();
}

} // namespace dtrain::data
