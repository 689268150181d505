// A disk in memory, for what one file would have.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "data/disk.h"

#include <string>

// Keeps in memory what is written, whatever the file.
class MemoryDisk final : public dtrain::data::Disk {
  public:
    std::string written;
    int create(const char *) override { return 0; }
    int64_t write(int, const void *data, size_t size) override {
        written.append(static_cast<const char *>(data), size);
        return int64_t(size);
    }
    int sync(int) override { return 0; }
    int close(int) override { return 0; }
    int rename(const char *, const char *) override { return 0; }
    int remove(const char *) override { return 0; }
    int make_folder(const char *) override { return 0; }
    int remove_folder(const char *) override { return 0; }
    int sync_folder(const char *) override { return 0; }
};
