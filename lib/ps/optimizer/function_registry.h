// The user functions that a process's server may run, by name.
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

// Thread-safe.
class FunctionRegistry {
  public:
    // Adds a copy of the function. On DTRAIN_ERR_VERSION, DTRAIN_ERR_INVALID or DTRAIN_ERR_STATE
    // nothing has changed.
    Status add(const dtrain_function_t &function);
    // Adds the functions that a shared object exports, all or none; an error text names the file.
    Status load(const std::string &path);
    // Loads each of several absolute paths, separated by ':'.
    Status load_all(std::string_view paths);
    // nullptr: there is none of that name, and `names` lists the existing ones. The result is valid
    // as long as the registry.
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
    std::vector<std::string> loaded_; // paths; a context may join several jobs in turn
};

std::vector<FunctionState> states_of(const dtrain_function_t &function);

} // namespace dtrain::ps
