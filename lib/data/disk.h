// An interface to the system calls that put files on a disk: tests make the n-th call, or the last,
// fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace dtrain::data {

// Each function does and returns what the system call does, or returns -errno. Thread-safe.
class Disk {
  public:
    virtual int create(const char *path) = 0; // creates an empty file for writing
    virtual int64_t write(int fd, const void *data, size_t size) = 0;
    virtual int sync(int fd) = 0;
    virtual int close(int fd) = 0;
    virtual int rename(const char *from, const char *to) = 0;
    virtual int remove(const char *path) = 0; // a file
    virtual int make_folder(const char *path) = 0;
    virtual int remove_folder(const char *path) = 0; // must be empty
    // Makes the names in a folder durable, if its file system can do so.
    virtual int sync_folder(const char *path) = 0;

  protected:
    ~Disk() = default;
};

Disk &system_disk();

} // namespace dtrain::data
