// Configures UCX, and keeps it from printing.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/library.h"

#include <cstdarg>
#include <cstdlib>
#include <mutex>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

namespace dtrain::ucx {
namespace {

// With the default format, UCX would write to standard output.
ucs_log_func_rc_t to_standard_error(const char *, unsigned, const char *, ucs_log_level_t,
                                    const ucs_log_component_config_t *, const char *format,
                                    va_list args) {
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "UCX: %s\n", text);
    return UCS_LOG_FUNC_RC_STOP;
}

struct Setting {
    const char *name, *value;
};
// Settings that the transport relies on.
constexpr Setting required[] = {
    // Messages of one link stay in order.
    {"MAX_EAGER_RAILS", "1"},
    // The receiver fetches, or is sent packets that it copies into place: no peer writes by address
    // to memory that the receiver may have given up meanwhile.
    {"RNDV_SCHEME", "get_zcopy"},
    // Shared memory releases a peer when the transport says so; the protocol finds out that it is
    // gone.
    {"MM_ERROR_HANDLING", "y"},
    // The size that shared memory passes on in one piece: one packet of this wire.
    {"MM_SEG_SIZE", "16640"},
    // TCP connects without waiting (and survives a refusal by the peer).
    {"CONN_NB", "y"},
    // The size that TCP sends and receives at once: one or two packets of this wire, and large
    // parts of bulk messages.
    {"TX_SEG_SIZE", "264K"},
    {"RX_SEG_SIZE", "264K"},
    // Connections send their own pings. UCX's keepalive would need the peer's number for an
    // endpoint before it is connected: UCX 1.13 aborts when an endpoint that requests this over
    // datagrams is closed.
    {"KEEPALIVE_INTERVAL", "inf"},
    // UCX's cache of registrations needs hooks in the process's memory calls to be safe; without
    // them UCX registers memory per operation, unless the caller has registered it.
    {"RCACHE_ENABLE", "n"},
    {"REG_METHODS", "direct"},
};
constexpr char default_tls[] = "^sm"; // the transport "shm" is for memory of one host

dtrain_status_t modify(const tp::Host &host, ucp_config_t *config, const char *name,
                       const char *value) {
    const ucs_status_t status = ucp_config_modify(config, name, value);
    if (status == UCS_OK) return DTRAIN_OK;
    return host.fail(DTRAIN_ERR_INVALID, "ucx: %s=%s: %s", name, value, ucs_status_string(status));
}

std::mutex users_mutex;
uint32_t users = 0;
pid_t users_process = 0;

} // namespace

bool enter() {
    const std::lock_guard lock(users_mutex);
    if (users && users_process != getpid()) return false;
    users++;
    users_process = getpid();
    return true;
}

void leave() {
    const std::lock_guard lock(users_mutex);
    users--;
}

void quieten() {
    static std::once_flag once;
    std::call_once(once, [] {
        if (!getenv("UCX_LOG_LEVEL")) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
        if (!getenv("UCX_LOG_FILE")) ucs_log_push_handler(to_standard_error);
        ucs_global_opts_set_value("WARN_UNUSED_ENV_VARS", "n");
    });
}

dtrain_status_t configure(const tp::Host &host, Settings &settings) {
    ucp_config_t *config = nullptr;
    const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
    if (status != UCS_OK)
        return host.fail(DTRAIN_ERR_INVALID,
                         "ucx: the settings in the environment (UCX_*) are not "
                         "valid: %s",
                         ucs_status_string(status));
    settings.config.reset(config);
    char text[256];
    const char *inherited = getenv("UCX_TLS");
    settings.chosen = host.option("ucx.tls", text, sizeof text) || inherited;
    if (!text[0]) snprintf(text, sizeof text, "%s", inherited ? inherited : default_tls);
    settings.networks = usable(text);
    dtrain_status_t result = modify(host, config, "TLS", settings.networks.tls.c_str());
    if (result == DTRAIN_OK && host.option("ucx.devices", text, sizeof text))
        result = modify(host, config, "NET_DEVICES", text);
    for (const auto &[name, value] : required)
        if (result == DTRAIN_OK) result = modify(host, config, name, value);
    return result;
}

} // namespace dtrain::ucx
