// A disk that fails, fills up, or loses power: what was not synced may be gone then.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"
#include "data/disk.h"
#include "temporary_folder.h"

#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

class FaultyDisk final : public dtrain::data::Disk {
  public:
    enum class Fault { none, error, crash };

    // From the n-th call on (counted from 0): fails (with that errno) once, or crashes: that call
    // and all after it do nothing, and fail.
    void plan(Fault fault, uint64_t n, int error = EIO) {
        fault_ = fault;
        at_ = n;
        error_ = error;
        calls_ = 0;
    }
    // As if the library did not make these calls.
    enum class Omitted { none, sync, sync_folder };
    void plant(Omitted omitted) { omitted_ = omitted; }
    uint64_t calls() const { return calls_; }
    bool crashed() const { return fault_ == Fault::crash && calls_ > at_; }
    // What a disk may hold after the crash: files that were not synced are cut in half (or empty),
    // names that were not synced are as before.
    void lose_power(bool names_too) {
        for (const auto &[path, size] : unsynced_) // under the name it has now
            if (std::filesystem::exists(path)) std::filesystem::resize_file(path, size / 2);
        if (names_too)
            for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
                std::error_code ignored;
                if (change->from.empty())
                    std::filesystem::remove_all(change->to, ignored);
                else
                    std::filesystem::rename(change->to, change->from, ignored);
            }
        unsynced_.clear();
        changes_.clear();
    }

    int create(const char *path) override {
        if (int error = next(); error < 0) return error;
        bool fresh = !std::filesystem::exists(path);
        int fd = system().create(path);
        if (fd >= 0) open_[fd] = path;
        if (fd >= 0) unsynced_[path] = 0;
        if (fd >= 0 && fresh) changes_.push_back({"", path});
        return fd;
    }
    int64_t write(int fd, const void *data, size_t size) override {
        if (int error = next(); error < 0) {
            if (fault_ == Fault::crash && size > 1) system().write(fd, data, size / 2); // torn
            return error;
        }
        unsynced_[open_[fd]] += size;
        return system().write(fd, data, size);
    }
    int sync(int fd) override {
        if (omitted_ == Omitted::sync) return 0;
        if (int error = next(); error < 0) return error;
        unsynced_.erase(open_[fd]);
        return 0; // what a real disk would have, it has here already
    }
    int close(int fd) override {
        int error = next();
        int closed = system().close(fd); // the descriptor is gone in any case
        return error < 0 ? error : closed;
    }
    int rename(const char *from, const char *to) override {
        if (int error = next(); error < 0) return error;
        if (auto cut = unsynced_.extract(from); !cut.empty()) unsynced_[to] = cut.mapped();
        changes_.push_back({from, to});
        return system().rename(from, to);
    }
    int remove(const char *path) override {
        if (int error = next(); error < 0) return error;
        unsynced_.erase(path);
        return system().remove(path);
    }
    int make_folder(const char *path) override {
        if (int error = next(); error < 0) return error;
        int made = system().make_folder(path);
        if (made == 0) changes_.push_back({"", path});
        return made;
    }
    int remove_folder(const char *path) override {
        if (int error = next(); error < 0) return error;
        return system().remove_folder(path);
    }
    int sync_folder(const char *path) override {
        if (omitted_ == Omitted::sync_folder) return 0;
        if (int error = next(); error < 0) return error;
        std::erase_if(changes_, [&](const Change &change) {
            return std::filesystem::path(change.to).parent_path() == path;
        });
        return 0;
    }

  private:
    struct Change {
        std::string from, to; // from is empty: `to` was made
    };
    static Disk &system() { return dtrain::data::system_disk(); }
    int next() {
        uint64_t call = calls_++;
        bool fails = fault_ == Fault::error ? call == at_ : fault_ == Fault::crash && call >= at_;
        return fails ? -error_ : 0;
    }

    Fault fault_ = Fault::none;
    Omitted omitted_ = Omitted::none;
    uint64_t at_ = 0, calls_ = 0;
    int error_ = EIO;
    std::map<int, std::string> open_;
    std::map<std::string, uint64_t> unsynced_; // bytes written since the last sync
    std::vector<Change> changes_;              // of names, since their folder's last sync
};
