// The core's services in C++ style: formatted texts, and options with defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dtrain_basics.h"
#include "dtrain_transport.h"

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace dtrain::tp {

// Answers query() and counters(): writes no more of *out than its struct_size covers.
template <class T> dtrain_status_t answer(T own, T *out) {
    own.struct_size = out->struct_size;
    memcpy(static_cast<void *>(out), &own, std::min<size_t>(own.struct_size, sizeof own));
    return DTRAIN_OK;
}

// Compares two MACs in a time that does not depend on where they differ.
inline bool equal_macs(const uint8_t a[32], const uint8_t b[32]) {
    unsigned difference = 0;
    for (size_t i = 0; i < 32; i++) difference |= unsigned(a[i] ^ b[i]);
    return !difference;
}

class Host {
  public:
    // `host` and all that it points to must live until the device is closed.
    explicit Host(const dtrain_tp_host_t *host) {
        memcpy(&host_, host, std::min<size_t>(host->struct_size, sizeof host_));
    }

    [[gnu::format(printf, 3, 4)]] dtrain_status_t fail(dtrain_status_t status, const char *format,
                                                       ...) const {
        char text[256];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        return DTRAIN_TP_HAS(&host_, fail) ? host_.fail(host_.self, status, text) : status;
    }
    [[gnu::format(printf, 3, 4)]] void log(int32_t level, const char *format, ...) const {
        if (!DTRAIN_TP_HAS(&host_, log)) return;
        char text[256];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        host_.log(host_.self, level, text);
    }
    // Copies the option; false (and "") if it is unset, empty or too long.
    bool option(const char *key, char *buf, size_t len) const {
        buf[0] = 0;
        if (DTRAIN_TP_HAS(&host_, option) && host_.option(host_.self, key, buf, len) == DTRAIN_OK &&
            buf[0])
            return true;
        buf[0] = 0;
        return false;
    }
    void card(const dtrain_tp_card_t &found) const {
        if (DTRAIN_TP_HAS(&host_, card)) host_.card(host_.self, &found);
    }
    int64_t now_ns() const { return host_.now_ns(host_.self); }
    void random(void *buf, size_t len) const { host_.random(host_.self, buf, len); }
    // DTRAIN_ERR_UNSUPPORTED: the job has no secret.
    dtrain_status_t sign(const void *data, size_t len, uint8_t mac[32]) const {
        return DTRAIN_TP_HAS(&host_, sign) ? host_.sign(host_.self, data, len, mac)
                                           : DTRAIN_ERR_UNSUPPORTED;
    }

    // The services for guards (guard.h). DTRAIN_ERR_UNSUPPORTED: no secret, or an older core.
    dtrain_status_t guard_new(void *offer, dtrain_tp_guard_t **guard_p) const {
        return DTRAIN_TP_HAS(&host_, guard_free) ? host_.guard_new(host_.self, offer, guard_p)
                                                 : DTRAIN_ERR_UNSUPPORTED;
    }
    dtrain_status_t guard_agree(dtrain_tp_guard_t *guard, uint32_t place, const void *peer_offer,
                                const void *transcript, size_t len, uint32_t *level_p) const {
        return host_.guard_agree(host_.self, guard, place, peer_offer, transcript, len, level_p);
    }
    void guard_seal(dtrain_tp_guard_t *guard, void *record, size_t len) const {
        host_.guard_seal(host_.self, guard, record, len);
    }
    dtrain_status_t guard_open(dtrain_tp_guard_t *guard, void *record, size_t len) const {
        return host_.guard_open(host_.self, guard, record, len);
    }
    void guard_free(dtrain_tp_guard_t *guard) const { host_.guard_free(host_.self, guard); }

  private:
    dtrain_tp_host_t host_{};
};

} // namespace dtrain::tp
