// The network cards of this host: their properties according to the kernel, which are used, and
// why.
// SPDX-License-Identifier: Apache-2.0
#include "rdm/cards.h"
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

void use(Card &card, std::string why) {
    card.chosen = true;
    card.why = std::move(why);
}

void choose_named(std::vector<Card> &cards, const Choice &choice) {
    const auto place = [&](const Card &card) { return place_in(choice.named, card.name); };
    std::ranges::stable_sort(cards, {}, place);
    for (Card &card : cards) {
        card.chosen = place(card) != std::string::npos;
        card.why = (card.chosen ? "named by option " : "not named by option ") + choice.option;
    }
}

void choose_one(std::vector<Card> &cards, const Choice &choice) {
    const auto rank = [&](const Card &card) {
        return card.name == "lo" ? 2 : card.address.empty() || card.address != choice.route;
    };
    std::ranges::stable_sort(cards, {}, rank);
    for (Card &card : cards) card.why = "one is enough; option " + choice.option + " names others";
    if (cards.empty()) return;
    use(cards[0], rank(cards[0]) == 0 ? "packets to the other hosts leave by it" : "the first");
}

// Of several cards in one network, each rank takes those near it, and leaves some to the other
// ranks.
void choose_share(std::vector<Card *> up, const Choice &choice) {
    std::ranges::stable_sort(up, {}, [](const Card *card) { return !card->near; });
    if (choice.local_size < 2) {
        for (Card *card : up)
            use(*card, card->near ? "near this process's cores"
                                  : "far from this process's cores, but no other rank uses it");
        return;
    }
    const auto near = size_t(std::ranges::count(up, true, &Card::near));
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

void choose_all(std::vector<Card> &cards, const Choice &choice) {
    std::set<std::string> networks;
    std::vector<Card *> up;
    // The order must be the same on all hosts, since rails connect the first cards with each other,
    // and so on. The network that leads to the rendezvous comes first.
    std::ranges::stable_sort(cards, {}, [&](const Card &card) {
        return std::tuple(card.state == "down",
                          card.address.empty() || card.address != choice.route, card.network,
                          card.name);
    });
    for (Card &card : cards) {
        if (card.state == "down") {
            card.why = "its link is down";
            continue;
        }
        up.push_back(&card);
        networks.insert(card.network);
    }
    if (networks.size() < 2) return choose_share(std::move(up), choice);
    for (Card *card : up)
        use(*card, "one rail for each network, " + (card->network.empty() ? "?" : card->network));
}

} // namespace

void Card::look_up(const std::string &root) {
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

void choose(std::vector<Card> &cards, const Choice &choice) {
    if (!choice.named.empty())
        choose_named(cards, choice);
    else if (choice.single)
        choose_one(cards, choice);
    else
        choose_all(cards, choice);
    std::ranges::stable_sort(cards, {}, [](const Card &card) { return !card.chosen; });
}

void tell(const tp::Host &host, const char *transport, const std::vector<Card> &cards) {
    for (const Card &card : cards) {
        dtrain_tp_card_t told{};
        told.struct_size = sizeof told;
        told.numa_node = card.numa_node;
        told.bandwidth_bps = card.bandwidth_bps;
        told.transport = transport;
        told.name = card.name.c_str();
        told.address = card.address.c_str();
        told.state = card.state.c_str();
        told.why = card.why.c_str();
        told.chosen = card.chosen;
        host.card(told);
    }
}

std::vector<Card> rdma_cards(const std::string &root) {
    std::vector<Card> cards;
    for (const std::string &name : names_in(root + "/class/infiniband")) {
        cards.emplace_back().name = name;
        cards.back().look_up(root);
    }
    return cards;
}

std::string unusable_devices(const std::string &root, const std::string &devices) {
    std::string text;
    for (const Card &card : rdma_cards(root))
        text += (text.empty() ? "" : ", ") + card.name + " is " + card.state;
    for (const std::string &name : names_in(root + "/class/infiniband_verbs")) {
        const std::string file = devices + "/infiniband/" + name;
        if (!name.starts_with("uverbs") || !access(file.c_str(), R_OK | W_OK)) continue;
        text += std::string(text.empty() ? "" : ", ") + file + ": " + strerror(errno);
    }
    return text;
}

} // namespace dtrain::rdm
