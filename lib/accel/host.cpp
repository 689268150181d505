// Implements the services for plugins.
// SPDX-License-Identifier: Apache-2.0
#include "accel/host.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace dtrain::accel {

// The functions of the table; `self` is the Host.
struct Services {
    static Host &host(void *self) { return *static_cast<Host *>(self); }

    static void log(void *self, int32_t level, const char *line) {
        const std::lock_guard lock(host(self).mutex_);
        if (Log *const log = host(self).log_)
            log->write_line(std::clamp<int32_t>(level, DTRAIN_LOG_ERROR, DTRAIN_LOG_DEBUG), line);
    }

    static Status option(void *self, const char *key, char *buf, size_t len) {
        std::string value;
        const std::lock_guard lock(host(self).mutex_);
        if (host(self).options_ == nullptr || !std::string_view(key).starts_with("plugin."))
            return dtrain::fail(DTRAIN_ERR_NOT_FOUND,
                                "option %s is not a plugin's (plugin.<name>.<key>)", key);
        if (Status s = host(self).options_->get(key, value); s != DTRAIN_OK) return s;
        if (value.size() >= len)
            return dtrain::fail(DTRAIN_ERR_TRUNCATED,
                                "option %s: the value needs %zu bytes, the buffer has %zu", key,
                                value.size() + 1, len);
        std::memcpy(buf, value.c_str(), value.size() + 1);
        return DTRAIN_OK;
    }

    static Status fail(void *, Status status, const char *text) {
        return dtrain::fail(status, "%s", text);
    }
};

Host::Host(const Options &options, Log &log)
    : options_(&options), log_(&log), table_{.struct_size = sizeof(dtrain_dv_host_t),
                                             .abi = DTRAIN_DV_ABI,
                                             .self = this,
                                             .log = Services::log,
                                             .option = Services::option,
                                             .fail = Services::fail} {}

void Host::leave() {
    const std::lock_guard lock(mutex_);
    options_ = nullptr;
    log_ = nullptr;
}

} // namespace dtrain::accel
