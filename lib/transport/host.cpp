// Implements the services for plugins.
// SPDX-License-Identifier: Apache-2.0
#include "transport/host.h"

#include "base/random.h"
#include "base/status.h"
#include "transport/guard.h"
#include "transport/plugin.h"

#include <algorithm>
#include <cstring>
#include <sodium.h>
#include <string>

namespace dtrain::transport {

// The functions of the table; `self` is the Host.
struct Services {
    static Host &host(void *self) { return *static_cast<Host *>(self); }

    static void log(void *self, int32_t level, const char *line) {
        host(self).log_.write_line(std::clamp<int32_t>(level, DTRAIN_LOG_ERROR, DTRAIN_LOG_DEBUG),
                                   line);
    }

    static bool is_fact(std::string_view key) {
        static constexpr std::string_view facts[] = {"local.address", "local.rank", "local.size",
                                                     "route.address"};
        return std::find(std::begin(facts), std::end(facts), key) != std::end(facts);
    }

    static Status option(void *self, const char *key, char *buf, size_t len) {
        for (const OptionSpec &spec : option_table())
            if (spec.secret && std::strcmp(spec.key, key) == 0)
                return dtrain::fail(DTRAIN_ERR_NOT_FOUND,
                                    "option %s is secret, so plugins cannot read it", key);
        std::string value;
        auto fact = host(self).facts_.find(std::string_view(key));
        if (fact != host(self).facts_.end())
            value = fact->second;
        else if (is_fact(key))
            return DTRAIN_ERR_NOT_FOUND;
        else if (Status s = host(self).options_.get(key, value); s != DTRAIN_OK)
            return s;
        if (value.size() >= len)
            return dtrain::fail(DTRAIN_ERR_TRUNCATED,
                                "option %s: the value needs %zu bytes, the buffer has %zu", key,
                                value.size() + 1, len);
        std::memcpy(buf, value.c_str(), value.size() + 1);
        return DTRAIN_OK;
    }

    static Status fail(void *, Status status, const char *msg) {
        return dtrain::fail(status, "%s", msg);
    }

    static int64_t now_ns(void *self) { return host(self).clock_.now_ns(); }

    static void random(void *, void *buf, size_t len) { random_bytes(buf, len); }

    static Status guard_new(void *self, void *offer, dtrain_tp_guard_t **guard_p) {
        const Host &own = host(self);
        if (own.secret_.empty())
            return dtrain::fail(DTRAIN_ERR_UNSUPPORTED, "the job has no secret to make keys from");
        return new_guard(own.demand_, offer, guard_p);
    }

    static Status guard_agree(void *self, dtrain_tp_guard_t *guard, uint32_t place,
                              const void *peer_offer, const void *transcript, size_t len,
                              uint32_t *level_p) {
        return agree(host(self).secret_.text(), guard, place, peer_offer,
                     {static_cast<const uint8_t *>(transcript), len}, level_p);
    }

    static Status sign(void *self, const void *data, size_t len, uint8_t mac[32]) {
        static_assert(crypto_auth_hmacsha256_BYTES == 32);
        const std::string_view secret = host(self).secret_.text();
        if (secret.empty())
            return dtrain::fail(DTRAIN_ERR_UNSUPPORTED, "the job has no secret to sign with");
        crypto_auth_hmacsha256_state state;
        crypto_auth_hmacsha256_init(&state, reinterpret_cast<const uint8_t *>(secret.data()),
                                    secret.size());
        crypto_auth_hmacsha256_update(&state, static_cast<const uint8_t *>(data), len);
        crypto_auth_hmacsha256_final(&state, mac);
        sodium_memzero(&state, sizeof state);
        return DTRAIN_OK;
    }

    static Status plugin(void *self, const char *name, const dtrain_tp_plugin_t **plugin_p) {
        const dtrain_tp_plugin_t *found = nullptr;
        Status status = find_plugin(name, host(self).options_.text("plugin.path"), found);
        if (status == DTRAIN_OK) *plugin_p = found;
        return status;
    }

    static void card(void *self, const dtrain_tp_card_t *told) {
        dtrain_tp_card_t full = {}; // the struct of an older plugin is shorter
        std::memcpy(&full, told, std::min<size_t>(told->struct_size, sizeof full));
        const auto text = [](const char *it) { return std::string(it != nullptr ? it : ""); };
        Card card = {.transport = text(full.transport),
                     .name = text(full.name),
                     .address = text(full.address),
                     .state = text(full.state),
                     .why = text(full.why),
                     .numa_node = full.numa_node,
                     .bandwidth_bps = full.bandwidth_bps,
                     .chosen = full.chosen != 0};
        host(self).log_.write(DTRAIN_LOG_INFO,
                              "%s: card %s (%s, %.1f Gbit/s, NUMA node %d, %s) is %s: %s",
                              card.transport.c_str(), card.name.c_str(), card.address.c_str(),
                              double(card.bandwidth_bps) * 8e-9, card.numa_node, card.state.c_str(),
                              card.chosen ? "used" : "not used", card.why.c_str());
        host(self).cards_.push_back(std::move(card));
    }

    static Status copy(void *self, void *dst, const void *src, size_t len) {
        if (host(self).copy_ != nullptr) return host(self).copy_(dst, src, len);
        std::memcpy(dst, src, len);
        return DTRAIN_OK;
    }
};

Host::Host(const Options &options, Log &log, Clock &clock, const Secret &secret,
           const protection::Least &demand, Copy copy)
    : options_(options), log_(log), clock_(clock), secret_(secret), demand_(demand), copy_(copy) {
    table_ = {.struct_size = sizeof table_,
              .abi = DTRAIN_TP_ABI,
              .self = this,
              .log = &Services::log,
              .option = &Services::option,
              .fail = &Services::fail,
              .now_ns = &Services::now_ns,
              .random = &Services::random,
              .sign = &Services::sign,
              .plugin = &Services::plugin,
              .copy = &Services::copy,
              .card = &Services::card,
              .guard_new = &Services::guard_new,
              .guard_agree = &Services::guard_agree,
              .guard_seal = &seal,
              .guard_open = &open,
              .guard_free = &free_guard};
}

} // namespace dtrain::transport
