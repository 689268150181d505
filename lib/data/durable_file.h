// Writes a file that appears under its name only when it is complete and on the disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"
#include "data/disk.h"

#include <string>

namespace dtrain::data {

// Not thread-safe; one writer per path at a time. Each error text names the file.
class DurableFile {
  public:
    explicit DurableFile(Disk &disk) : disk_(disk) {}
    ~DurableFile() { discard(); }
    DurableFile(const DurableFile &) = delete;
    DurableFile &operator=(const DurableFile &) = delete;

    // Creates path + ".tmp", or empties the one that an earlier attempt has left.
    Status open(const std::string &path);
    Status write(const void *data, size_t size); // unbuffered
    // Syncs the file, gives it its name, and syncs the folder. On failure nothing is left behind,
    // except that the file may have appeared if only the last step failed.
    Status commit();

  private:
    Status failed(const char *what, int64_t error) const;
    void discard();

    Disk &disk_;
    int fd_ = -1;
    std::string path_, temporary_; // temporary_ is empty if there is nothing to remove
};

// Reads a whole file of at most `limit` bytes. The error text does not name the file.
Status read_small_file(const std::string &path, size_t limit, std::string &content);

} // namespace dtrain::data
