// Opens the devices of a plugin, and checks what the plugin reports.
// SPDX-License-Identifier: Apache-2.0
#include "transport/device.h"

#include "base/status.h"
#include "transport/plugin.h"
#include "transport/verifier.h"

#include <algorithm>
#include <cstring>

namespace dtrain::transport {
namespace {

constexpr size_t max_names = 4096; // bytes that list() may write

// A plugin may fail without setting a text; the text of an older failure must not be used for it.
Status explain(Status status, std::string_view name, const char *operation) {
    if (error_text()[0] == 0) fail(status, "%s", status_text(status));
    return fail_within(status, "transport %.*s: %s", int(name.size()), name.data(), operation);
}

struct Need {
    uint64_t capability;
    const char *text;
    bool met;
};

} // namespace

Device::Device(const dtrain_tp_plugin_t &plugin) : name_(plugin.name) {
    // Copied, because the table of an older plugin is shorter; what it lacks is NULL in the copy.
    std::memcpy(&ops_, plugin.ops, std::min<size_t>(plugin.ops->struct_size, sizeof ops_));
}

Device::~Device() {
    if (dev_ != nullptr) ops_.close(dev_);
}

Status Device::open(const Host &host, std::string_view name, const Options &options,
                    std::vector<std::unique_ptr<Device>> &out) {
    std::shared_ptr<const StandardDescriptors> occupied = std::make_shared<StandardDescriptors>();
    const dtrain_tp_plugin_t *plugin = nullptr;
    Status status = find_plugin(name, options.text("plugin.path"), plugin);
    if (status != DTRAIN_OK) return status;
    // Built-in transports do not need the standard descriptors occupied.
    if (std::ranges::find(builtin_plugins(), plugin) != builtin_plugins().end()) occupied.reset();
    set_error_text("");
    std::string names(max_names, '\0');
    status = plugin->ops->list(host.table(), names.data(), names.size());
    if (status != DTRAIN_OK) return explain(status, plugin->name, "list");
    names.back() = 0;
    std::vector<std::unique_ptr<Device>> devices;
    for (const char *at = names.c_str(); *at != 0;) {
        const std::string one(at, std::strcspn(at, ","));
        at += one.size() + (at[one.size()] == ',' ? 1 : 0);
        if (one.empty()) continue;
        devices.emplace_back(new Device(*plugin));
        devices.back()->occupied_ = occupied;
        if (status = devices.back()->start(host, one.c_str()); status != DTRAIN_OK) return status;
    }
    // By default a secret protects data where the transport can.
    const std::string_view protection = options.text("protection");
    if (protection == "integrity" || protection == "encrypted")
        for (const auto &device : devices)
            if (!device->has(DTRAIN_TP_CAP_GUARDED))
                return fail(
                    DTRAIN_ERR_UNSUPPORTED,
                    "transport %s: it cannot protect what it sends (option protection=%.*s)",
                    plugin->name, int(protection.size()), protection.data());
    if (devices.empty())
        return fail(DTRAIN_ERR_UNSUPPORTED, "transport %s: this machine has no device for it",
                    plugin->name);
    for (auto &device : devices) out.push_back(std::move(device));
    return DTRAIN_OK;
}

Status Device::start(const Host &host, const char *device) {
    Status status = DTRAIN_OK;
    label_ = device;
    if (status = ops_.open(host.table(), device, &dev_); status != DTRAIN_OK) {
        dev_ = nullptr;
        return explain(status, name_, "open");
    }
    attr_.struct_size = sizeof attr_;
    attr_.numa_node = -1;
    if (status = ops_.query(dev_, &attr_); status != DTRAIN_OK)
        return explain(status, name_, "query");
    if (status = check(); status != DTRAIN_OK) return status;
    return renew_address();
}

Status Device::verify() {
    Status status = verify_messages(ops_, dev_);
    if (status == DTRAIN_OK) status = ops_.query(dev_, &attr_);
    return status == DTRAIN_OK ? DTRAIN_OK : explain(status, name_, "verify");
}

Status Device::renew_address() {
    address_.resize(attr_.address_len);
    Status status = ops_.address(dev_, address_.data(), address_.size());
    return status == DTRAIN_OK ? DTRAIN_OK : explain(status, name_, "address");
}

Status Device::check() const {
    const auto &o = ops_;
    const Need needs[] = {
        {0, "at least one piece per message", attr_.max_iov >= 1},
        {0, "room for a message", attr_.max_message >= 1},
        {0, "an address of 1 to 512 bytes",
         attr_.address_len >= 1 && attr_.address_len <= max_blob},
        {0, "keys of at most 512 bytes", attr_.rkey_len <= max_blob},
        {0, "window handles of at most 512 bytes", attr_.window_handle_len <= max_blob},
        {DTRAIN_TP_CAP_PUT, "put() and registration", o.put && o.mr_reg && o.mr_dereg && o.mr_rkey},
        {DTRAIN_TP_CAP_GET, "get() and registration", o.get && o.mr_reg && o.mr_dereg && o.mr_rkey},
        {DTRAIN_TP_CAP_WINDOW, "the window operations",
         o.window_create && o.window_attach && o.window_address && o.window_ring && o.window_free},
        {DTRAIN_TP_CAP_EVENT_FD, "event_fd() and arm()", o.event_fd && o.arm},
        {DTRAIN_TP_CAP_DMABUF, "mr_reg()", o.mr_reg && o.mr_dereg},
    };
    for (const Need &need : needs)
        if (has(need.capability) && !need.met)
            return fail(DTRAIN_ERR_TRANSPORT,
                        "transport %s is broken: what it reports of its device lacks %s",
                        name_.c_str(), need.text);
    return DTRAIN_OK;
}

} // namespace dtrain::transport
