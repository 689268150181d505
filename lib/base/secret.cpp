// Reads the option or the file, which nobody else may be able to read.
// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include "base/fd.h"
#include "base/secret_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace dtrain {

Status read_private_file(const char *option, const std::string &path, Secret &secret) {
    Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "option %s: \"%s\"", option, path.c_str());
    struct stat file {};
    if (fstat(fd.get(), &file) != 0)
        return fail_errno(errno, "option %s: \"%s\"", option, path.c_str());
    if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return fail(DTRAIN_ERR_CONFIG,
                    "option %s: users other than its owner have access to \"%s\" (mode "
                    "%04o), so it is not secret; chmod 600 it (for a Kubernetes volume, "
                    "defaultMode: 0400)",
                    option, path.c_str(), unsigned(file.st_mode & 07777));
    char buffer[Secret::most_bytes + 1];
    ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0) return fail_errno(errno, "option %s: \"%s\"", option, path.c_str());
    while (n > 0 && (buffer[n - 1] == '\n' || buffer[n - 1] == '\r')) n--;
    if (n == 0 || n == ssize_t(sizeof buffer))
        return fail(DTRAIN_ERR_CONFIG, "option %s: \"%s\" is empty or longer than 4096 bytes",
                    option, path.c_str());
    // A crash leaves such a file if its content was not on the disk yet.
    if (std::all_of(buffer, buffer + n, [](char c) { return c == 0; }))
        return fail(DTRAIN_ERR_CONFIG, "option %s: \"%s\" has zero bytes only", option,
                    path.c_str());
    secret = std::string_view(buffer, size_t(n));
    explicit_bzero(buffer, sizeof buffer);
    return DTRAIN_OK;
}

void Secret::keep(std::string_view text) {
    if (text.empty()) return;
    void *piece = take_secret_memory(text.size());
    if (piece == nullptr) throw std::bad_alloc();
    std::memcpy(piece, text.data(), text.size());
    const auto give_back = [length = text.size()](const char *bytes) {
        give_back_secret_memory(const_cast<char *>(bytes), length);
    };
    bytes_.reset(static_cast<const char *>(piece), give_back);
    length_ = text.size();
}

Status read_secret(const Options &options, Secret &secret) {
    secret = options.text("secret");
    const std::string path(options.text("secret.file"));
    return secret.empty() && !path.empty() ? read_private_file("secret.file", path, secret)
                                           : DTRAIN_OK;
}

} // namespace dtrain
