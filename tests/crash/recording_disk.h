// A disk that notes each call that changes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "crash/disk_log.h"
#include "data/disk.h"

#include <map>
#include <utility>

namespace crash {

// Leaves out the syncs, which only the model of the disk needs: they would take most of the time.
// Not thread-safe.
class RecordingDisk final : public dtrain::data::Disk {
  public:
    using Kind = DiskCall::Kind;

    DiskLog take() { return std::exchange(log_, {}); }

    int create(const char *path) override {
        const int fd = system().create(path);
        if (fd < 0) return fd;
        open_[fd] = {files_++, path};
        note(Kind::create, fd);
        return fd;
    }
    int64_t write(int fd, const void *data, size_t size) override {
        const int64_t n = system().write(fd, data, size);
        if (n > 0) note(Kind::write, fd).data.assign(static_cast<const char *>(data), size_t(n));
        return n;
    }
    int sync(int fd) override { return note(Kind::sync, fd), 0; }
    int close(int fd) override {
        note(Kind::close, fd);
        return system().close(fd);
    }
    int rename(const char *from, const char *to) override {
        return note(system().rename(from, to), Kind::rename, from, to);
    }
    int remove(const char *path) override {
        return note(system().remove(path), Kind::remove, path);
    }
    int make_folder(const char *path) override {
        return note(system().make_folder(path), Kind::make_folder, path);
    }
    int remove_folder(const char *path) override {
        return note(system().remove_folder(path), Kind::remove_folder, path);
    }
    int sync_folder(const char *path) override { return note(0, Kind::sync_folder, path); }

  private:
    struct File {
        int number;
        std::string path;
    };
    static Disk &system() { return dtrain::data::system_disk(); }
    DiskCall &note(Kind kind, int fd) {
        const File &file = open_.at(fd);
        return log_.emplace_back(DiskCall{kind, file.number, file.path, {}, {}});
    }
    int note(int result, Kind kind, const char *path, const char *to = "") {
        if (result == 0) log_.push_back({kind, -1, path, to, {}});
        return result;
    }

    DiskLog log_;
    std::map<int, File> open_; // by descriptor
    int files_ = 0;
};

} // namespace crash
