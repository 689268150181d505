// Maps keys of a sparse table to the servers that hold their rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/hash.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace dtrain::ps {

// Maps by equal shares of a hash of the keys, or by a table of slots for ranges of keys or of their
// hashes. The hash differs from those that locate rows within a server; otherwise each server would
// use only a part of its index.
class KeyPartition {
  public:
    static constexpr uint32_t slot_bits = 16; // a table by hash has 2^slot_bits slots
    enum class By : uint8_t { shares, hash, key };

    struct Shares { // Lemire: Fast random integer generation in an interval, 2019
        uint32_t servers;
        uint32_t operator()(uint64_t key) const {
            return uint32_t((unsigned __int128)(mix(~key)) * servers >> 64);
        }
    };
    struct HashSlots {
        const uint16_t *owners;
        uint32_t operator()(uint64_t key) const { return owners[mix(~key) >> (64 - slot_bits)]; }
    };
    struct KeySlots {
        const uint16_t *owners;
        uint64_t last;
        uint32_t shift;
        uint32_t operator()(uint64_t key) const { return owners[std::min(key >> shift, last)]; }
    };

    // servers > 0; version: grows when a later partition replaces this one.
    explicit KeyPartition(uint32_t servers, uint32_t version = 0)
        : servers_(servers), version_(version) {}
    // owners: by slot. By hash there are 2^slot_bits slots. By key each slot has 2^shift keys, and
    // the last one also has all keys beyond.
    KeyPartition(uint32_t servers, uint32_t version, By by, std::vector<uint16_t> owners,
                 uint32_t shift = 0)
        : owners_(std::make_shared<const std::vector<uint16_t>>(std::move(owners))), by_(by),
          shift_(shift), servers_(servers), version_(version) {}

    // Calls f(server_of), where server_of maps keys to servers; for loops over many keys.
    template <class F> decltype(auto) with_lookup(F &&f) const {
        switch (by_) {
        case By::hash: return f(HashSlots{owners_->data()});
        case By::key: return f(KeySlots{owners_->data(), owners_->size() - 1, shift_});
        default: return f(Shares{servers_});
        }
    }
    uint32_t server_of(uint64_t key) const {
        return with_lookup([&](auto server_of) { return server_of(key); });
    }
    uint32_t servers() const { return servers_; }
    uint32_t version() const { return version_; }
    // The server's share of all keys or hashes; keys beyond the last slot are not counted.
    double share(uint32_t server) const {
        if (owners_ == nullptr) return server < servers_ ? 1.0 / servers_ : 0;
        auto its = std::count(owners_->begin(), owners_->end(), server);
        return double(its) / double(owners_->size());
    }

  private:
    std::shared_ptr<const std::vector<uint16_t>> owners_;
    By by_ = By::shares;
    uint32_t shift_ = 0, servers_, version_;
};

} // namespace dtrain::ps
