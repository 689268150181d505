// Which of UCX's transports are used.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/networks.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

namespace dtrain::ucx {
namespace {

using Names = std::vector<std::string_view>;

// "self" delivers within send(); the others read memory that its owner may have taken back.
constexpr std::string_view never[] = {"self", "cma", "knem", "xpmem"};

Names split(std::string_view list) {
    Names names;
    for (size_t begin = 0, end; begin < list.size(); begin = end + 1) {
        end = std::min(list.find(',', begin), list.size());
        const std::string_view name = list.substr(begin, end - begin);
        if (name == "sm" || name == "shm")
            names.insert(names.end(), {"posix", "sysv"});
        else if (!name.empty())
            names.push_back(name);
    }
    return names;
}

bool has(const Names &names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

bool has_rdma_device() {
    std::error_code error;
    return !std::filesystem::is_empty("/sys/class/infiniband", error) && !error;
}

} // namespace

Networks usable(std::string_view list) {
    Networks result;
    const bool all_but = list == "all" || list.starts_with('^');
    Names names = split(list == "all" ? "" : list.substr(all_but));
    if (all_but) {
        names.insert(names.end(), std::begin(never), std::end(never));
        result.shared_memory = !has(names, "posix") || !has(names, "sysv");
        result.tls += '^';
    } else {
        for (std::string_view name : never) std::erase(names, name);
        result.shared_memory = has(names, "posix") || has(names, "sysv");
        result.within_machine = result.shared_memory && std::ranges::all_of(names, [](auto name) {
                                    return name == "posix" || name == "sysv";
                                });
    }
    result.copying = (!all_but && std::ranges::all_of(names,
                                                      [](auto name) {
                                                          return name == "posix" ||
                                                                 name == "sysv" || name == "tcp";
                                                      })) ||
                     !has_rdma_device();
    result.only_tcp = result.copying && !result.shared_memory;
    for (std::string_view name : names) {
        if (name != names.front()) result.tls += ',';
        result.tls += name;
    }
    return result;
}

} // namespace dtrain::ucx
