// SageMaker and environments that imitate it: the hosts of a training job as a JSON list.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/source.h"
#include "cluster/host/names.h"
#include "wire/limits.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dtrain::cluster {
namespace {

using Json = nlohmann::json; // uses only functions that do not throw on values checked before

bool applies(const Variables &env) { return env.has("SM_HOSTS"); }

// A view, as tf_config.cpp parses, so that there is one parser.
Status hosts_of(const std::string &list, std::vector<std::string> &out) {
    const Json json = Json::parse(std::string_view(list), nullptr, false);
    const bool strings = json.is_array() && !json.empty() && json.size() <= wire::max_members &&
                         std::ranges::all_of(json, [](const Json &one) { return one.is_string(); });
    if (!strings)
        return fail(DTRAIN_ERR_CONFIG, "SM_HOSTS=%.100s is not a JSON list of host names",
                    list.c_str());
    for (const Json &one : json) out.push_back(one.get<std::string>());
    return DTRAIN_OK;
}

Status read(const Surroundings &around, Role, Finding &finding) {
    const Variables &env = around.env;
    std::vector<std::string> hosts;
    if (Status s = hosts_of(env.text("SM_HOSTS"), hosts); s != DTRAIN_OK) return s;
    const std::string own = env.text("SM_CURRENT_HOST");
    const auto at = std::ranges::find(hosts, own);
    if (at == hosts.end())
        return fail(DTRAIN_ERR_CONFIG, "SM_CURRENT_HOST=%.100s is not one of SM_HOSTS=%.200s",
                    own.c_str(), env.text("SM_HOSTS").c_str());
    const auto rank = int32_t(at - hosts.begin()), size = int32_t(hosts.size());
    finding.evidence = text("SM_HOSTS says that this is rank %d of %d (SageMaker)", rank, size);
    if (Status s = split_roles(env, rank, size, finding.evidence, finding.identity); s != DTRAIN_OK)
        return s;
    if (size > 1 && !env.has("DTRAIN_RENDEZVOUS"))
        meet_at(hosts[0], lone_seed, "SM_HOSTS names no port", finding.identity);
    return DTRAIN_OK;
}

} // namespace

extern const Source sagemaker;
const Source sagemaker = {"SageMaker, a process per host", "SM_HOSTS, SM_CURRENT_HOST",
                          "the first of SM_HOSTS, at a fixed port", applies, read};

} // namespace dtrain::cluster
