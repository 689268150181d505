// Loads plugins of accelerators, and classifies addresses.
// SPDX-License-Identifier: Apache-2.0
#include "accel/domains.h"

#include "accel/plugin.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <link.h>
#include <mutex>
#include <string_view>
#include <sys/uio.h>
#include <unistd.h>

namespace dtrain::accel {
namespace {

constexpr size_t max_names = 4096; // bytes that list() may write

// Which plugin serves an accelerator, and the library by which programs use that.
struct Known {
    const char *plugin, *library;
};
constexpr Known known_accelerators[] = {{"cuda", "libcuda.so.1"}};

// In whichever version. Does not ask dlopen(), which would look for the file in some fifty places.
bool is_loaded(std::string_view library) {
    constexpr std::string_view suffix = ".so";
    std::string_view stem = library.substr(0, library.find(suffix) + suffix.size());
    const auto is_it = [](dl_phdr_info *info, size_t, void *wanted) {
        const std::string_view path = info->dlpi_name;
        const std::string_view file = path.substr(path.rfind('/') + 1); // all of it without a '/'
        return int(file.starts_with(*static_cast<const std::string_view *>(wanted)));
    };
    return dl_iterate_phdr(is_it, &stem) != 0;
}

// Whether this process can read the byte. Where the system forbids the question: yes.
bool is_readable(const void *address) {
    char byte = 0;
    const iovec into = {&byte, 1}, from = {const_cast<void *>(address), 1};
    return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

} // namespace

// A loaded plugin and its devices, which are opened when memory of theirs is first used.
class Domains::Plugin {
  public:
    Plugin(const dtrain_dv_plugin_t &plugin, std::shared_ptr<Host> host,
           const Domain::Config &config)
        : name_(plugin.name), host_(std::move(host)), config_(config) {
        // Copied, because the table of an older plugin is shorter; what it lacks is NULL then.
        std::memcpy(&ops_, plugin.ops, std::min<size_t>(plugin.ops->struct_size, sizeof ops_));
    }
    ~Plugin() {
        for (Device &device : devices_)
            if (device.domain != nullptr) Domain::end(std::move(device.domain));
    }
    Plugin(const Plugin &) = delete;
    Plugin &operator=(const Plugin &) = delete;

    // Asks for the devices. UNSUPPORTED: there are none.
    Status list() {
        std::string names(max_names, '\0');
        set_error_text("");
        if (Status s = ops_.list(host_->table(), names.data(), names.size()); s != DTRAIN_OK)
            return explain(s, name_.c_str(), "list");
        names.back() = 0;
        for (const char *at = names.c_str(); *at != 0;) {
            Device device;
            device.name.assign(at, std::strcspn(at, ","));
            at += device.name.size() + (at[device.name.size()] == ',' ? 1 : 0);
            if (device.name.empty()) continue;
            device.attr.struct_size = sizeof device.attr;
            device.attr.numa_node = -1;
            set_error_text("");
            if (Status s = ops_.query(host_->table(), device.name.c_str(), &device.attr);
                s != DTRAIN_OK)
                return explain(s, device.name.c_str(), "query");
            devices_.push_back(std::move(device));
        }
        if (!devices_.empty()) return DTRAIN_OK;
        return fail(DTRAIN_ERR_UNSUPPORTED, "accelerator %s: this machine has none", name_.c_str());
    }

    const std::string &name() const { return name_; }

    // `decided`: the address is of memory that this plugin knows, of a device (out) or not.
    Status classify(const void *address, uint64_t bytes, Where &out, bool &decided) {
        dtrain_dv_range_t range = {};
        range.struct_size = sizeof range;
        range.ordinal = -1;
        set_error_text("");
        if (Status s = ops_.classify(host_->table(), address, bytes, &range); s != DTRAIN_OK)
            return explain(s, name_.c_str(), "classify");
        decided = range.kind != DTRAIN_DV_HOST;
        out.kind = range.kind;
        if (range.kind != DTRAIN_DV_DEVICE) return DTRAIN_OK; // the host can access the others
        out.address = reinterpret_cast<void *>(range.address);
        out.allocation_bytes = range.length;
        if (Status s = open(range.ordinal, out.domain); s != DTRAIN_OK || out.domain != nullptr)
            return s;
        return fail(DTRAIN_ERR_DEVICE,
                    "accelerator %s: it has no device %d, to which it says that "
                    "memory belongs",
                    name_.c_str(), range.ordinal);
    }

    // nullptr: it has no device of that number.
    Status open(int32_t ordinal, Domain *&out) {
        std::lock_guard lock(mutex_);
        out = nullptr;
        for (Device &device : devices_) {
            if (device.attr.ordinal != ordinal) continue;
            if (device.domain == nullptr)
                if (Status s =
                        Domain::open(ops_, host_, device.name, device.attr, config_, device.domain);
                    s != DTRAIN_OK)
                    return s;
            out = device.domain.get();
        }
        return DTRAIN_OK;
    }
    std::string devices() const {
        std::string all;
        for (const Device &device : devices_) all += (all.empty() ? "" : ", ") + device.name;
        return all;
    }

    PluginReport report() {
        PluginReport report{.name = name_, .why = "", .devices = {}};
        std::lock_guard lock(mutex_);
        for (const Device &device : devices_) {
            DeviceReport one{.attr = device.attr, .is_open = device.domain != nullptr};
            if (one.is_open) {
                one.to_host_bytes = device.domain->to_host().bytes();
                one.to_device_bytes = device.domain->to_device().bytes();
                one.reduced_bytes = device.domain->reduced_bytes();
                one.moved_bytes = device.domain->moved_bytes();
            }
            report.devices.push_back(one);
        }
        return report;
    }

  private:
    struct Device {
        std::string name;
        dtrain_dv_attr_t attr = {};
        std::shared_ptr<Domain> domain;
    };

    const StandardDescriptors
        occupied_; // so that the accelerator's library opens no file as 0 to 2
    const std::string name_;
    const std::shared_ptr<Host> host_;
    const Domain::Config config_;
    dtrain_dv_ops_t ops_{};
    std::mutex mutex_; // of the domains in devices_
    std::vector<Device> devices_;
};

Domains::Domains(const Options &options, Log &log)
    : options_(options), host_(std::make_shared<Host>(options, log)) {}

Domains::~Domains() {
    plugins_.clear();
    host_->leave();
}

Domains::Plugin *Domains::find_plugin_of(std::string_view name) {
    for (const auto &plugin : plugins_)
        if (plugin->name() == name) return plugin.get();
    return nullptr;
}

Status Domains::load(std::string_view name) {
    std::lock_guard lock(mutex_);
    if (find_plugin_of(name) != nullptr) return DTRAIN_OK;
    const dtrain_dv_plugin_t *plugin = nullptr;
    Status s = find_plugin(name, options_.text("plugin.path"), plugin);
    std::unique_ptr<Plugin> made;
    if (s == DTRAIN_OK && waker_ == nullptr) s = Waker::make(wake_fd_, waker_);
    if (s == DTRAIN_OK) {
        made = std::make_unique<Plugin>(
            *plugin, host_,
            Domain::Config{.keep = uint64_t(options_.number("accelerators.pinned")),
                           .waker = waker_.get()});
        s = made->list();
    }
    std::erase_if(unused_, [&](const PluginReport &report) { return report.name == name; });
    if (s != DTRAIN_OK) {
        unused_.push_back({.name = std::string(name), .why = error_text(), .devices = {}});
        return s;
    }
    plugins_.push_back(std::move(made));
    usable_.store(true, std::memory_order_release);
    return DTRAIN_OK;
}

Status Domains::open(int wake_fd) {
    wake_fd_ = wake_fd;
    std::string_view rest = options_.text("accelerators");
    if (rest == "none") return DTRAIN_OK;
    if (rest == "auto") {
        look();
        return DTRAIN_OK;
    }
    while (!rest.empty()) {
        const std::string_view name = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        if (name.empty()) continue;
        if (Status s = load(name); s != DTRAIN_OK) return fail_within(s, "option accelerators");
    }
    return DTRAIN_OK;
}

void Domains::look() {
    if (options_.text("accelerators") != "auto") return;
    for (const Known &known : known_accelerators)
        if (is_loaded(known.library)) (void)load(known.plugin); // why not is in the report
}

Status Domains::require(std::string_view plugin) {
    if (options_.text("accelerators") == "auto") return load(plugin);
    std::shared_lock lock(mutex_);
    if (find_plugin_of(plugin) != nullptr) return DTRAIN_OK;
    return fail(DTRAIN_ERR_UNSUPPORTED,
                "accelerator %.*s: the option accelerators is \"%s\", which leaves it out; set it "
                "to \"auto\"",
                int(plugin.size()), plugin.data(),
                std::string(options_.text("accelerators")).c_str());
}

Status Domains::find_device(std::string_view plugin, int32_t ordinal, Domain *&out) {
    if (Status s = require(plugin); s != DTRAIN_OK) return s;
    std::shared_lock lock(mutex_);
    Plugin *const found = find_plugin_of(plugin);
    if (Status s = found->open(ordinal, out); s != DTRAIN_OK || out != nullptr) return s;
    return fail(DTRAIN_ERR_INVALID,
                "accelerator %.*s: there is no device %d; this process can use %s",
                int(plugin.size()), plugin.data(), ordinal, found->devices().c_str());
}

Status Domains::find(const void *address, uint64_t bytes, Where &out) {
    out = {};
    if (address == nullptr || bytes == 0) return DTRAIN_OK;
    if (known_.find(address, bytes, out)) return DTRAIN_OK;
    Status failed = DTRAIN_OK;
    {
        std::shared_lock lock(mutex_);
        for (const auto &plugin : plugins_) {
            bool decided = false;
            Status s = plugin->classify(address, bytes, out, decided);
            if (s == DTRAIN_OK && decided) return s;
            if (s != DTRAIN_OK) failed = s;
        }
    }
    // An accelerator that has failed says no more what is its own; the host reads only its own
    // memory.
    const std::string text = failed != DTRAIN_OK ? error_text() : "";
    if (failed != DTRAIN_ERR_INVALID && is_readable(address)) return DTRAIN_OK;
    if (failed != DTRAIN_OK) return set_error_text(text.c_str()), failed;
    return fail(DTRAIN_ERR_INVALID,
                "%p is memory neither of this process nor of an accelerator; if it was an "
                "accelerator's, it has been freed",
                address);
}

std::vector<PluginReport> Domains::report() {
    std::shared_lock lock(mutex_);
    std::vector<PluginReport> all;
    for (const auto &plugin : plugins_) all.push_back(plugin->report());
    all.insert(all.end(), unused_.begin(), unused_.end());
    const std::string_view option = options_.text("accelerators");
    for (const Known &known : known_accelerators) {
        auto same = [&](const PluginReport &report) { return report.name == known.plugin; };
        if (std::ranges::any_of(all, same)) continue;
        std::string why = "the program has not loaded " + std::string(known.library) +
                          " (option accelerators=auto; name the plugin to load it anyway)";
        if (option != "auto") why = "the option accelerators is \"" + std::string(option) + "\"";
        all.push_back({.name = known.plugin, .why = std::move(why), .devices = {}});
    }
    return all;
}

} // namespace dtrain::accel
