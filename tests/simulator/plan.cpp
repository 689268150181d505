// What a seed stands for.
// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>

namespace dtrain::simulator {
namespace {

// What a link that is cut holds back is sent again within this time.
constexpr int64_t sent_again = 300 * ms;

constexpr int64_t begin = 1'000 * second;
constexpr char secret[] = "a secret of sixteen bytes or more";

// Options of which each has but one value elsewhere.
constexpr struct {
    const char *key;
    std::array<const char *, 5> values; // up to the first that is nullptr
} choices[] = {
    {"allreduce.algorithm", {"direct", "ring", "recursive_doubling", "halving_doubling"}},
    {"allreduce.algorithm", {"binomial_tree", "double_tree", "hierarchical", "hierarchical_tree"}},
    {"checkpoint.keep", {"1", "2", "0"}},
    {"chunk.bytes", {"4K", "20K", "1M"}},
    {"eager.bytes", {"1K", "10K", "1M"}},
    {"explain", {"yes"}},
    {"gradients.bucket", {"64K"}},
    {"gradients.cycle", {"0", "10ms"}},
    {"gradients.known", {"1"}},
    {"heartbeat.interval", {"20ms", "400ms"}},
    {"log.level", {"info"}},
    {"ps.peer_memory", {"1M"}},
    {"stall.check", {"1ms", "1s"}},
    {"stall.limit", {"0", "5s"}},
    {"tuning.adapt", {"yes"}},
    {"verify.results", {"1"}},
    {"wait.spin", {"0", "20us", "2ms"}},
};

// A card has to return the memory of a withdrawn operation within 30 ms.
constexpr int64_t fast_enough = 10 * ms; // one way

} // namespace

Plan::Plan(uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t limit) { return int64_t(random() % limit); };
    ranks = 2 + int(below(4));
    steps = 4 + int(below(12));
    op_timeout = (below(4) == 0 ? 3 : 20) * second;
    silence = (1 + below(4)) * second;
    // These cost the most.
    is_dense = below(8) == 0;
    join_timeout = (is_dense ? 60 : 15) * second;
    switch_each = is_dense ? 2u << below(3) : 8u << below(5);
    call_cost = is_dense ? 50 << below(3) : 200 << below(4);
    empty_cost = is_dense && below(2) == 0 ? call_cost : 20 * us;
    latency = (5 + below(200)) * us;
    cores = int(1 << below(7));
    options = {{"transports", "tcp"},
               {"op.timeout", std::to_string(op_timeout) + "ns"},
               {"log.level", "warn"},
               {"heartbeat.timeout", std::to_string(silence) + "ns"},
               {"join.timeout", std::to_string(join_timeout) + "ns"}};
    const bool has_secret = below(4) == 0;
    if (has_secret) options.emplace_back("secret", secret);
    manual = below(4) == 0;
    if (manual) options.emplace_back("progress", "manual");
    if (below(4) == 0) options.emplace_back("verify", "on");
    if (below(3) == 0) {
        kind = Kind::elastic;
        options.emplace_back("elastic", "yes");
        newcomers = int(below(4));
        for (int i = 0; i < newcomers; i++) starts.push_back(begin + below(3'000) * ms);
    }
    for (int64_t i = below(3); i > 0; i--) add_fault(random());
    restarts = kind == Kind::fixed && below(3) == 0;
    has_cards = below(4) == 0;
    if (has_cards) { // the protocol of libfabric and UCX
        options.front().second = "card";
        options.emplace_back("plugin.path", DTRAIN_SIMULATOR_PLUGINS);
        if (below(3) == 0) { // in records
            if (!has_secret) options.emplace_back("secret", secret);
            options.emplace_back("protection", below(2) == 0 ? "integrity" : "encrypted");
        }
    }
    // Requests are repeated while they are on their way, and while they wait for other workers.
    if (below(3) == 0) options.emplace_back("ps.retry", std::to_string(1 + below(40)) + "ms");
    add_options(random());
    if (kind == Kind::fixed) {
        has_server = below(3) == 0;
        // Of workers that serve, tables may be lost.
        if (has_server && !may_fail() && below(2) == 0) options.emplace_back("ps.serve", "yes");
        return;
    }
    // Tables of workers that may be lost are lost with them.
    has_server = may_fail() || below(2) == 0;
    if (below(2) == 0) leaver = int(below(uint64_t(ranks)));
    leaves_after = uint64_t(below(uint64_t(steps * ranks)));
}

void Plan::add_options(uint64_t random) {
    std::mt19937_64 each(random);
    has_racks = each() % 8 == 0;
    has_timelines = each() % 16 == 0;
    if (each() % 2 == 0) return;
    for (const auto &[key, values] : choices) {
        if (each() % 8 != 0) continue;
        const auto count = std::ranges::count_if(values, [](auto *value) { return value; });
        options.emplace_back(key, values[each() % uint64_t(count)]);
    }
}

void Plan::add_fault(uint64_t random) {
    std::mt19937_64 each(random);
    Fault fault;
    fault.kind = Fault::Kind(each() % uint64_t(Fault::Kind::count));
    fault.at = begin + int64_t(each() % 64) * (1 << each() % 7) * ms / 8;
    fault.who = int(each() % uint64_t(workers()));
    fault.whom = (fault.who + 1 + int(each() % uint64_t(workers() - 1))) % workers();
    fault.lasts = int64_t(each() % 10'000) * ms;
    // The link to the coordinator matters most.
    if (fault.kind == Fault::Kind::cut && each() % 2 == 0) {
        fault.who = 0;
        fault.whom = 1 + int(each() % uint64_t(workers() - 1));
    }
    if (fault.kind == Fault::Kind::kill || fault.kind == Fault::Kind::power_off) fault.lasts = 0;
    if (fault.kind == Fault::Kind::slow) fault.lasts = int64_t(each() % 20) * ms;
    if (fault.kind == Fault::Kind::jump)
        fault.lasts = int64_t(each() % 7'200) * second - 3'600 * second;
    if (fault.kind == Fault::Kind::starve) fault.share = 1 << each() % 8;
    if (fault.kind == Fault::Kind::full_disk) {
        fault.share = 1 << each() % 3;
        fault.at = begin + int64_t(each() % 16) * ms; // while there is something to save
    }
    if (fault.kind == Fault::Kind::slow_disk) fault.lasts = int64_t(each() % 50) * ms;
    if (fault.kind == Fault::Kind::cut && each() % 4 == 0) fault.lasts = 1'000 * second;
    faults.push_back(fault);
}

// Whether it may make a call fail that needs the one whom it has hit.
bool Plan::harms(const Fault &fault) const {
    switch (fault.kind) {
    case Fault::Kind::slow: return has_cards && fault.lasts > fast_enough;
    case Fault::Kind::jump:
    case Fault::Kind::full_disk:
    case Fault::Kind::slow_disk: return false;
    default: return true;
    }
}

bool Plan::may_fail() const {
    return std::ranges::any_of(faults, [&](const Fault &fault) {
        switch (fault.kind) {
        case Fault::Kind::stop:
        case Fault::Kind::cut: return fault.lasts + sent_again >= std::min(silence, op_timeout) / 2;
        case Fault::Kind::full_disk: return true;
        default: return harms(fault);
        }
    });
}

bool Plan::fills_disks() const {
    return std::ranges::any_of(
        faults, [](const Fault &fault) { return fault.kind == Fault::Kind::full_disk; });
}

bool Plan::is_suspect(int process) const {
    return std::ranges::any_of(faults, [&](const Fault &fault) {
        return harms(fault) && (fault.who == process || ((fault.kind == Fault::Kind::cut ||
                                                          fault.kind == Fault::Kind::slow) &&
                                                         fault.whom == process));
    });
}

bool Plan::may_be_waited_for(int process) const {
    return std::ranges::any_of(faults, [&](const Fault &fault) {
        return (fault.kind == Fault::Kind::starve && fault.who == process) ||
               (fault.kind == Fault::Kind::cut && (fault.who == process || fault.whom == process));
    });
}

int Plan::suspects() const {
    int count = 0;
    for (int i = 0; i < workers(); i++) count += is_suspect(i);
    return count;
}

int64_t Plan::stopped(int process) const {
    int64_t sum = 0;
    for (const Fault &fault : faults)
        if (fault.kind == Fault::Kind::stop && fault.who == process) sum += fault.lasts;
    return sum;
}

std::string Plan::text() const {
    static constexpr const char *names[] = {
        "killed",          "stopped",        "cut off from",
        "without power",   "slow to",        "told another time of day",
        "short of memory", "on a full disk", "on a slow disk"};
    std::string out = std::to_string(ranks) + " ranks, " + std::to_string(steps) + " steps";
    for (auto &[key, value] : options) out += ", " + key + "=" + value;
    if (has_racks) out += ", two racks";
    if (has_timelines) out += ", timelines";
    if (has_server) out += ", a server";
    if (restarts) out += ", and a second job";
    if (kind == Kind::elastic) out += ", " + std::to_string(newcomers) + " newcomers";
    if (leaver != nobody) out += ", rank " + std::to_string(leaver) + " leaves";
    for (const Fault &fault : faults) {
        char line[128];
        snprintf(line, sizeof line, "\n  at %.3f s rank %d is %s",
                 double(fault.at - begin) / second, fault.who, names[size_t(fault.kind)]);
        out += line;
        const bool two = fault.kind == Fault::Kind::cut || fault.kind == Fault::Kind::slow;
        if (two) out += " rank " + std::to_string(fault.whom);
        if (fault.lasts != 0) {
            snprintf(line, sizeof line, ", %.3f s", double(fault.lasts) / second);
            out += line;
        }
    }
    return out;
}

void set_up(World &fresh, const Plan &plan, uint32_t masked_faults) {
    fresh.switch_each = plan.switch_each;
    fresh.call_cost = plan.call_cost;
    fresh.empty_cost = plan.empty_cost;
    fresh.cores = plan.cores;
    for (auto &row : fresh.links)
        for (Link &link : row) link.latency = plan.latency;
    for (size_t i = 0; i < plan.starts.size(); i++)
        fresh.processes[size_t(plan.ranks) + i].starts_at = plan.starts[i];
    for (size_t i = 0; i < plan.faults.size(); i++) {
        fresh.faults[i] = plan.faults[i];
        fresh.faults[i].masked = masked_faults >> i & 1;
    }
    fresh.fault_count = int(plan.faults.size());
}

} // namespace dtrain::simulator
