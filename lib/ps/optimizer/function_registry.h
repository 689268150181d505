// The functions that a process's server may run, by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_function.h"
#include "ps/table/table_params.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::ps {

// Any thread.
class FunctionRegistry {
  public:
    // Copies it. DTRAIN_ERR_VERSION, DTRAIN_ERR_INVALID, DTRAIN_ERR_STATE; nothing has changed
    // then.
    Status add(const dtrain_function_t &function);
    // Those that a shared object exports, all or none; the failure names the file.
    Status load(const std::string &path);
    // Each of some absolute paths, separated by ':'.
    Status load_all(std::string_view paths);
    // nullptr: there is none; `names` tells those that there are. Lives as long as the registry.
    const dtrain_function_t *find(const std::string &name, std::string &names) const;

  private:
    using Query = decltype(&dtrain_function_query);
    struct Entry {
        std::string name;
        std::vector<FunctionState> states;
        std::vector<dtrain_function_state_t> given;
        dtrain_function_t function = {};
    };
    using Entries = std::vector<std::unique_ptr<Entry>>;
    static Status append(const dtrain_function_t &function, Entries &to);
    static Status ask(Query query, Entries &to);
    Status insert(Entries entries); // all or none

    mutable std::mutex mutex_;
    std::map<std::string, std::unique_ptr<Entry>> entries_;
    std::vector<std::string> loaded_; // paths: contexts may join one job after another
};

std::vector<FunctionState> states_of(const dtrain_function_t &function);

} // namespace dtrain::ps
