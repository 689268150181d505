// Reads what the kernel knows of a network card.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/card.h"

#include "base/fd.h"
#include "base/hash.h"
#include "common/machine.h"
#include "common/route.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace dtrain::nccl {
namespace {

constexpr size_t longest_message = size_t{1} << 30; // test() reports lengths as int
constexpr int most_comms = 1 << 16;

// The interface that has the numeric address; "" if there is none.
std::string interface_with(const std::string &address) {
    const tp::Interfaces all = tp::all_interfaces();
    for (const ifaddrs *i = all.get(); i != nullptr; i = i->ifa_next)
        if (i->ifa_addr != nullptr && tp::ip_of(i->ifa_addr) != nullptr &&
            tp::ip_text(i->ifa_addr) == address)
            return i->ifa_name;
    return {};
}

// In Mbit/s; 0 if it is not known, as of virtual devices.
int interface_speed(const std::string &name) {
    const Fd fd(open(("/sys/class/net/" + name + "/speed").c_str(), O_RDONLY | O_CLOEXEC));
    char text[16] = "";
    if (!fd || read(fd.get(), text, sizeof text - 1) <= 0) return 0;
    return std::max(0, std::atoi(text));
}

std::string real_path(const std::string &path) {
    char out[PATH_MAX];
    return realpath(path.c_str(), out) != nullptr ? out : "";
}

uint64_t hash_of(const std::string &text) {
    uint64_t hash = tp::machine_fingerprint("net");
    for (const char c : text) hash = mix(hash, uint8_t(c));
    return hash;
}

} // namespace

CardTexts::CardTexts(const transport::Device &device, const std::string &address)
    : name_(std::string(device.name()) + ":" + std::string(device.label())) {
    const dtrain_tp_attr_t &attr = device.attr();
    std::string interface(device.label());
    if (const std::string found = interface_with(interface); !found.empty()) interface = found;
    if (interface == "auto") interface = interface_with(address);
    // A name with a slash would lead to another folder.
    if (!interface.empty() && interface.find('/') == std::string::npos) {
        for (const char *folder : {"/sys/class/infiniband/", "/sys/class/net/"})
            if (pci_path_.empty()) pci_path_ = real_path(folder + interface + "/device");
        card_.speed_mbps = interface_speed(interface);
    }
    const uint64_t model = std::max(attr.bandwidth_bps, uint64_t{125'000});
    const uint64_t bytes = attr.remote_bandwidth_bps != 0 ? attr.remote_bandwidth_bps : model;
    if (card_.speed_mbps == 0) card_.speed_mbps = int(std::min<uint64_t>(bytes / 125'000, INT_MAX));
    const uint64_t latency = attr.remote_latency_ns != 0 ? attr.remote_latency_ns : attr.latency_ns;
    card_.latency_us = float(latency) / 1000;
    card_.guid = hash_of(name_);
    card_.max_comms = most_comms;
    card_.max_message = std::min<uint64_t>(attr.max_message, longest_message);
}

} // namespace dtrain::nccl
