// A folder for a test, which goes away with what is in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

struct TemporaryFolder {
    // where: a folder; /dev/shm is faster if many files are made.
    explicit TemporaryFolder(const std::string &where = "/tmp")
        : name(where + "/dtrain-test-XXXXXX") {
        if (mkdtemp(name.data()) == nullptr)
            throw std::system_error(errno, std::generic_category(), name);
    }
    ~TemporaryFolder() {
        std::error_code ignored; // a folder that stays harms no test
        std::filesystem::remove_all(name, ignored);
    }
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;

    std::string file(const std::string &leaf) const { return name + "/" + leaf; }
    size_t count() const { // of what is in it
        return size_t(std::distance(std::filesystem::directory_iterator(name), {}));
    }

    std::string name;
};
