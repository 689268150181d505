// Reads what srun sets.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/slurm.h"

#include "base/hash.h"
#include "cluster/host/names.h"

#include <charconv>

namespace dtrain::cluster {
namespace {

// Some versions give the steps of batch scripts and of allocations numbers from this one on.
constexpr uint64_t first_special_step = 0xfffffff0;

bool read_number(const std::string &text, uint64_t &out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && *end == 0;
}

} // namespace

bool in_slurm_step(const Variables &env) {
    uint64_t number = 0;
    return read_number(env.text("SLURM_STEP_ID"), number) && number < first_special_step;
}

std::string first_host(std::string_view list) {
    std::string out;
    while (!list.empty() && list[0] != ',') {
        if (list[0] != '[') {
            out += list[0];
            list.remove_prefix(1);
            continue;
        }
        const size_t close = list.find(']');
        if (close == list.npos) return "";
        const std::string_view inside = list.substr(1, close - 1);
        out += inside.substr(0, inside.find_first_of(",-"));
        list.remove_prefix(close + 1);
    }
    return out;
}

bool meet_in_slurm_step(const Variables &env, int32_t rank, Identity &out) {
    int32_t own = 0;
    uint64_t job = 0, step = 0;
    const std::string host = first_host(env.text("SLURM_STEP_NODELIST"));
    if (host.empty() || !in_slurm_step(env) ||
        env.number("SLURM_PROCID", 0, INT32_MAX, own) != DTRAIN_OK || own != rank ||
        !read_number(env.text("SLURM_JOB_ID"), job) ||
        !read_number(env.text("SLURM_STEP_ID"), step))
        return false;
    const auto seed = uint32_t(mix(job, step) | 1);
    meet_at(host, seed,
            text("step %llu.%llu of Slurm meets at %.100s", static_cast<unsigned long long>(job),
                 static_cast<unsigned long long>(step), host.c_str()),
            out);
    return true;
}

} // namespace dtrain::cluster
