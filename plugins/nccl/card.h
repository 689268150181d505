// What NCCL is told of a device.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "transport/device.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace dtrain::nccl {

// NCCL keeps the texts for as long as it runs.
struct Card {
    char *name = nullptr;
    char *pci_path = nullptr; // in /sys; nullptr: unknown, or no PCI device
    uint64_t guid = 0;        // the same in all processes of the host
    int speed_mbps = 0;
    float latency_us = 0;
    int max_comms = 0;
    size_t max_message = 0;
};

// Owns the texts of a Card.
class CardTexts {
  public:
    // Reads the speed and the place of the device from /sys if the kernel knows it by the
    // transport's name for it, or has an interface with that numeric address; else the transport's
    // model of its network counts.
    CardTexts(const transport::Device &device, const std::string &address);
    Card card() {
        Card copy = card_;
        copy.name = name_.data();
        copy.pci_path = pci_path_.empty() ? nullptr : pci_path_.data();
        return copy;
    }

  private:
    std::string name_, pci_path_;
    Card card_;
};

} // namespace dtrain::nccl
