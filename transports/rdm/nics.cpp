// The network cards (NICs) of this host: their properties according to the kernel, which are used,
// and why.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/nics.h"
#include "common/stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sched.h>
#include <set>
#include <system_error>
#include <unistd.h>

namespace dtrain::rdm {
namespace {

// The first line of a file of the kernel; "" if there is none.
std::string read(const std::string &path) {
    char line[4096] = "";
    const tp::Stream file = tp::read_stream(path.c_str());
    if (!file || !fgets(line, sizeof line, file.get())) return "";
    line[strcspn(line, "\n")] = 0;
    return line;
}

// Whether this process may use one of the CPUs in a list: "0-3,8-11".
bool may_use(const std::string &list) {
    cpu_set_t own;
    if (list.empty() || sched_getaffinity(0, sizeof own, &own)) return true;
    for (const char *at = list.c_str(); *at;) {
        char *end;
        const unsigned long first = strtoul(at, &end, 10);
        const unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &own)) return true;
        if (end == at) return true; // not a list
        at = *end ? end + 1 : end;
    }
    return false;
}

// The position of a name in a list of names; npos if it is not there.
size_t place_in(const std::string &list, const std::string &name) {
    return ("," + list + ",").find("," + name + ",");
}

std::vector<std::string> names_in(const std::string &folder) {
    std::vector<std::string> names;
    const tp::Folder entries = tp::open_folder(folder.c_str());
    while (const dirent *entry = entries ? readdir(entries.get()) : nullptr)
        if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    std::ranges::sort(names);
    return names;
}

void use(Nic &nic, std::string why) {
    nic.chosen = true;
    nic.why = std::move(why);
}

void choose_named(std::vector<Nic> &nics, const Choice &choice) {
    const auto place = [&](const Nic &nic) { return place_in(choice.named, nic.name); };
    std::ranges::stable_sort(nics, {}, place);
    for (Nic &nic : nics) {
        nic.chosen = place(nic) != std::string::npos;
        nic.why = (nic.chosen ? "named by option " : "not named by option ") + choice.option;
    }
}

void choose_one(std::vector<Nic> &nics, const Choice &choice) {
    const auto rank = [&](const Nic &nic) {
        return nic.name == "lo" ? 2 : nic.address.empty() || nic.address != choice.route;
    };
    std::ranges::stable_sort(nics, {}, rank);
    for (Nic &nic : nics) nic.why = "one is enough; option " + choice.option + " names others";
    if (nics.empty()) return;
    use(nics[0], rank(nics[0]) == 0 ? "packets to the other hosts leave by it" : "the first");
}

// Of several cards in one network, each rank takes those near it, and leaves some to the other
// ranks.
void choose_share(std::vector<Nic *> up, const Choice &choice) {
    std::ranges::stable_sort(up, {}, [](const Nic *nic) { return !nic->near; });
    if (choice.local_size < 2) {
        for (Nic *nic : up)
            use(*nic, nic->near ? "near this process's cores"
                                : "far from this process's cores, but no other rank uses it");
        return;
    }
    const auto near = size_t(std::ranges::count(up, true, &Nic::near));
    const size_t pool = near ? near : up.size();
    const size_t share = std::clamp<size_t>(up.size() / size_t(choice.local_size), 1, pool);
    for (size_t i = 0; i < up.size(); i++)
        up[i]->why =
            i < pool ? "left to other ranks of this host" : "far from this process's cores";
    const std::string why = "local rank " + std::to_string(choice.local_rank) + " of " +
                            std::to_string(choice.local_size) + (near ? ", near its cores" : "");
    for (size_t i = 0; i < share; i++)
        use(*up[(size_t(choice.local_rank) * share + i) % pool], why);
}

void choose_all(std::vector<Nic> &nics, const Choice &choice) {
    std::set<std::string> networks;
    std::vector<Nic *> up;
    // The order must be the same on all hosts, since rails connect the first cards with each other,
    // and so on. The network that leads to the rendezvous comes first.
    std::ranges::stable_sort(nics, {}, [&](const Nic &nic) {
        return std::tuple(nic.state == "down", nic.address.empty() || nic.address != choice.route,
                          nic.network, nic.name);
    });
    for (Nic &nic : nics) {
        if (nic.state == "down") {
            nic.why = "its link is down";
            continue;
        }
        up.push_back(&nic);
        networks.insert(nic.network);
    }
    if (networks.size() < 2) return choose_share(std::move(up), choice);
    for (Nic *nic : up)
        use(*nic, "one rail for each network, " + (nic->network.empty() ? "?" : nic->network));
}

} // namespace

void Nic::look_up(const std::string &root) {
    const std::string net = root + "/class/net/" + name;
    std::string rdma = root + "/class/infiniband/" + name;
    std::error_code error;
    if (!std::filesystem::exists(rdma, error)) // for libfabric's "mlx5_0-dgram"
        rdma = root + "/class/infiniband/" + name.substr(0, name.rfind('-'));
    const bool is_rdma = std::filesystem::exists(rdma, error);
    const std::string device_folder = (is_rdma ? rdma : net) + "/device";
    if (is_rdma) {
        const std::string port = rdma + "/ports/1", text = read(port + "/state"); // "4: ACTIVE"
        if (!text.empty()) state = text.find("ACTIVE") != std::string::npos ? "up" : "down";
        bandwidth_bps = uint64_t(strtod(read(port + "/rate").c_str(), nullptr) * 1e9 / 8);
    } else if (const std::string text = read(net + "/operstate"); text == "up" || text == "down") {
        state = text;
        const double mbits = strtod(read(net + "/speed").c_str(), nullptr);
        bandwidth_bps = mbits > 0 ? uint64_t(mbits * 1e6 / 8) : 0;
    }
    if (const std::string node = read(device_folder + "/numa_node"); !node.empty())
        numa_node = atoi(node.c_str());
    near = may_use(read(device_folder + "/local_cpulist"));
}

Choice Choice::of(const tp::Host &host, const char *option) {
    Choice choice;
    char text[256];
    choice.option = option;
    if (host.option(option, text, sizeof text)) choice.named = text;
    if (host.option("route.address", text, sizeof text)) choice.route = text;
    if (host.option("local.rank", text, sizeof text)) choice.local_rank = std::max(0, atoi(text));
    if (host.option("local.size", text, sizeof text)) choice.local_size = std::max(1, atoi(text));
    return choice;
}

void choose(std::vector<Nic> &nics, const Choice &choice) {
    if (!choice.named.empty())
        choose_named(nics, choice);
    else if (choice.single)
        choose_one(nics, choice);
    else
        choose_all(nics, choice);
    std::ranges::stable_sort(nics, {}, [](const Nic &nic) { return !nic.chosen; });
}

void tell(const tp::Host &host, const char *transport, const std::vector<Nic> &nics) {
    for (const Nic &nic : nics) {
        dtrain_tp_card_t told{};
        told.struct_size = sizeof told;
        told.numa_node = nic.numa_node;
        told.bandwidth_bps = nic.bandwidth_bps;
        told.transport = transport;
        told.name = nic.name.c_str();
        told.address = nic.address.c_str();
        told.state = nic.state.c_str();
        told.why = nic.why.c_str();
        told.chosen = nic.chosen;
        host.card(told);
    }
}

std::vector<Nic> rdma_nics(const std::string &root) {
    std::vector<Nic> nics;
    for (const std::string &name : names_in(root + "/class/infiniband")) {
        nics.emplace_back().name = name;
        nics.back().look_up(root);
    }
    return nics;
}

std::string unusable_devices(const std::string &root, const std::string &devices) {
    std::string text;
    for (const Nic &nic : rdma_nics(root))
        text += (text.empty() ? "" : ", ") + nic.name + " is " + nic.state;
    for (const std::string &name : names_in(root + "/class/infiniband_verbs")) {
        const std::string file = devices + "/infiniband/" + name;
        if (!name.starts_with("uverbs") || !access(file.c_str(), R_OK | W_OK)) continue;
        text += std::string(text.empty() ? "" : ", ") + file + ": " + strerror(errno);
    }
    return text;
}

} // namespace dtrain::rdm
