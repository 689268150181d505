// The core's services for a transport under test: options, secret, clock and texts are the test's
// own.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_transport.h"
#include "transport/guard.h"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <random>
#include <sodium.h>
#include <string>

namespace dtrain::test {

inline int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

class FakeHost {
  public:
    FakeHost() {
        table_.struct_size = sizeof table_;
        table_.abi = DTRAIN_TP_ABI;
        table_.self = this;
        table_.log = [](void *self, int32_t, const char *line) { of(self).keep(line); };
        table_.option = option;
        table_.fail = [](void *self, dtrain_status_t status, const char *text) {
            of(self).keep(text);
            return status;
        };
        table_.now_ns = [](void *self) { return now_ns() + of(self).ahead_ns; };
        table_.random = random;
        table_.sign = sign;
        table_.plugin = plugin;
        table_.guard_new = guard_new;
        table_.guard_agree = guard_agree;
        table_.guard_seal = transport::seal;
        table_.guard_open = transport::open;
        table_.guard_free = transport::free_guard;
        table_.copy = [](void *, void *to, const void *from, size_t len) -> dtrain_status_t {
            memcpy(to, from, len);
            return DTRAIN_OK;
        };
    }
    FakeHost(const FakeHost &) = delete;

    const dtrain_tp_host_t *table() const { return &table_; }
    // The last text that the transport gave to log() or fail().
    std::string text() {
        const std::lock_guard lock(mutex_);
        return text_;
    }

    std::map<std::string, std::string> options;
    std::string secret;   // empty: none
    int64_t ahead_ns = 0; // of the real time, which goes on, too
    // As option protection=integrity, so that tests inside this host have records, too.
    static constexpr protection::Least usual_demand = protection::Level::integrity;
    protection::Least demand = usual_demand; // where there is a secret
    uint32_t level = DTRAIN_TP_PLAIN;        // that guards have agreed on last
    std::map<std::string, const dtrain_tp_plugin_t *> plugins;

  private:
    static FakeHost &of(void *self) { return *static_cast<FakeHost *>(self); }
    void keep(const char *text) {
        const std::lock_guard lock(mutex_);
        text_ = text;
        if (getenv("DTRAIN_TEST_LOG")) fprintf(stderr, "%s\n", text);
    }
    static dtrain_status_t option(void *self, const char *key, char *buf, size_t len) {
        const auto found = of(self).options.find(key);
        if (found == of(self).options.end()) return DTRAIN_ERR_NOT_FOUND;
        if (found->second.size() >= len) return DTRAIN_ERR_TRUNCATED;
        memcpy(buf, found->second.c_str(), found->second.size() + 1);
        return DTRAIN_OK;
    }
    static void random(void *, void *buf, size_t len) {
        std::random_device device;
        for (size_t i = 0; i < len; i++) static_cast<uint8_t *>(buf)[i] = uint8_t(device());
    }
    static dtrain_status_t sign(void *self, const void *data, size_t len, uint8_t mac[32]) {
        const std::string &key = of(self).secret;
        if (key.empty()) return DTRAIN_ERR_UNSUPPORTED;
        crypto_auth_hmacsha256_state state;
        crypto_auth_hmacsha256_init(&state, reinterpret_cast<const uint8_t *>(key.data()),
                                    key.size());
        crypto_auth_hmacsha256_update(&state, static_cast<const uint8_t *>(data), len);
        crypto_auth_hmacsha256_final(&state, mac);
        return DTRAIN_OK;
    }
    static dtrain_status_t guard_new(void *self, void *offer, dtrain_tp_guard_t **guard_p) {
        if (of(self).secret.empty()) return DTRAIN_ERR_UNSUPPORTED;
        return transport::new_guard(of(self).demand, offer, guard_p);
    }
    static dtrain_status_t guard_agree(void *self, dtrain_tp_guard_t *guard, uint32_t place,
                                       const void *peer_offer, const void *transcript, size_t len,
                                       uint32_t *level_p) {
        const dtrain_status_t status =
            transport::agree(of(self).secret, guard, place, peer_offer,
                             {static_cast<const uint8_t *>(transcript), len}, level_p);
        of(self).level = *level_p;
        return status;
    }
    static dtrain_status_t plugin(void *self, const char *name, const dtrain_tp_plugin_t **out) {
        const auto found = of(self).plugins.find(name);
        if (found == of(self).plugins.end()) return DTRAIN_ERR_NOT_FOUND;
        *out = found->second;
        return DTRAIN_OK;
    }

    dtrain_tp_host_t table_{};
    std::mutex mutex_;
    std::string text_;
};

} // namespace dtrain::test
