// Describes the next generation of a job in JSON.
// SPDX-License-Identifier: Apache-2.0
#include "api/changes.h"
#include "api/json.h"

#include <vector>

namespace dtrain::api {
namespace {

std::string list(const std::vector<std::string> &items) {
    std::string out = "[";
    for (const std::string &item : items) out += (out.size() > 1 ? ", " : "") + item;
    return out + "]";
}

std::string texts(const std::vector<std::string> &all) {
    std::vector<std::string> items;
    items.reserve(all.size());
    for (const std::string &one : all) items.push_back(quoted(one));
    return list(items);
}

} // namespace

std::string describe(const cluster::NextJob &next) {
    std::vector<std::string> ranks;
    ranks.reserve(next.workers.size());
    for (int32_t old : next.workers) ranks.push_back(old < 0 ? "null" : std::to_string(old));
    return "{\"generation\": " + std::to_string(next.identity.generation) +
           ", \"size\": " + std::to_string(next.workers.size()) + ", \"ranks\": " + list(ranks) +
           ", \"came\": " + texts(next.came) + ", \"went\": " + texts(next.went) + "}";
}

} // namespace dtrain::api
