// Opens the devices as dtrain_context_create() does, and keeps the attempts to connect.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/net.h"

#include "base/clock.h"
#include "base/secret.h"
#include "base/status.h"
#include "cluster/host/interfaces.h"
#include "protection/demand.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace dtrain::nccl {
namespace {

constexpr std::string_view control_transport = "tcp", inside_hosts = "shm";

std::string host_and_process() {
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0) host[0] = 0;
    return std::string(host) + ":" + std::to_string(getpid());
}

} // namespace

Status Net::open(dtrain_log_fn sink, std::unique_ptr<Net> &out) {
    std::unique_ptr<Net> net(new Net);
    net->log_.set_sink(sink, nullptr);
    net->log_.set_level(DTRAIN_LOG_INFO); // NCCL_DEBUG decides what is shown
    if (Status s = net->read_options(); s != DTRAIN_OK) return s;
    if (Status s = net->open_rails(); s != DTRAIN_OK) return s;
    out = std::move(net);
    return DTRAIN_OK;
}

Status Net::read_options() {
    if (Status s = Options::from_environment(options_); s != DTRAIN_OK) return s;
    if (options_.text("log.level") == "debug") log_.set_level(DTRAIN_LOG_DEBUG);
    Secret secret;
    if (Status s = read_secret(options_, secret); s != DTRAIN_OK) return s;
    protection::Demand demand;
    if (Status s = read_demand(options_, !secret.empty(), demand); s != DTRAIN_OK) return s;
    patience_ns_ = options_.number("join.timeout");
    who_ = host_and_process();
    host_ =
        std::make_unique<transport::Host>(options_, log_, monotonic_clock(), secret, demand.data);
    // A job of dtrain knows from its rendezvous which address leads to the others; here nobody
    // does.
    if (const std::vector<std::string> own = cluster::own_addresses(); !own.empty()) {
        address_ = own.front();
        host_->set_fact("local.address", address_);
    }
    return DTRAIN_OK;
}

Status Net::open_rails() {
    std::vector<std::unique_ptr<transport::Device>> devices;
    Status s = transport::Device::open(*host_, control_transport, options_, devices);
    if (s != DTRAIN_OK) return s;
    control_ = std::make_unique<Rail>(std::move(devices.front()));
    devices.clear();
    std::string reasons;
    std::string_view rest = options_.text("transports");
    while (devices.empty() && !rest.empty()) {
        const std::string_view name = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        if (name.empty() || name == inside_hosts) continue;
        s = transport::Device::open(*host_, name, options_, devices);
        if (s == DTRAIN_ERR_UNSUPPORTED) {
            log_.write(DTRAIN_LOG_INFO, "%s; the transport is not used", error_text());
            reasons += (reasons.empty() ? "" : "; ") + std::string(error_text());
        } else if (s != DTRAIN_OK) {
            return s;
        }
    }
    if (devices.empty())
        return fail(
            DTRAIN_ERR_CONFIG, "none of the transports \"%s\" (option transports) can be used: %s",
            std::string(options_.text("transports")).c_str(),
            reasons.empty() ? "shm is not for NCCL, and there is no other" : reasons.c_str());
    const int64_t eager_bytes = options_.number("eager.bytes");
    for (auto &device : devices) {
        if (eager_bytes >= 0) device->limit_eager(uint64_t(eager_bytes));
        cards_.emplace_back(*device, address_);
        rails_.push_back(std::make_unique<Rail>(std::move(device)));
        // What tcp has sent, the kernel has.
        if (rails_.back()->device().name() != control_transport)
            if (s = keep(*rails_.back()); s != DTRAIN_OK) return s;
        const Card card = cards_.back().card();
        log_.write(DTRAIN_LOG_INFO, "device %zu: %s, %d Mbit/s, %s", rails_.size() - 1, card.name,
                   card.speed_mbps, card.pci_path != nullptr ? card.pci_path : "no PCI device");
    }
    return DTRAIN_OK;
}

Status Net::keep(Rail &rail) {
    keepers_.push_back(std::make_unique<Keeper>(rail));
    return keepers_.back()->start();
}

Status Net::check(int device) const {
    if (device >= 0 && device < devices()) return DTRAIN_OK;
    return fail(DTRAIN_ERR_INVALID, "there is no device %d; this host has %d", device, devices());
}

Status Net::describe(int device, Card &card) {
    if (Status s = check(device); s != DTRAIN_OK) return s;
    card = cards_[size_t(device)].card();
    return DTRAIN_OK;
}

Status Net::listen(int device, void *handle, std::unique_ptr<Listener> &out) {
    if (Status s = check(device); s != DTRAIN_OK) return s;
    auto listener =
        std::make_unique<Listener>(*control_, *rails_[size_t(device)], log_, who_, patience_ns_);
    if (Status s = listener->open(handle); s != DTRAIN_OK) return s;
    out = std::move(listener);
    return DTRAIN_OK;
}

// Takes it out, so that no other thread has it; drops those that NCCL has given up. nullptr: none.
std::unique_ptr<Dialer> Net::find_dialer(const Handle &handle) {
    const std::lock_guard lock(mutex_);
    const int64_t now = monotonic_clock().now_ns();
    std::erase_if(dialers_, [now](const auto &dialer) {
        const int64_t after = now - 60 * second; // NCCL gets the error of one that is polled
        return dialer->deadline_ns() < after;
    });
    // The number alone may be forged: handles come from peers.
    const auto same = [&](const auto &dialer) {
        return dialer->attempt() == handle.attempt &&
               dialer->handle().listener == handle.listener &&
               dialer->handle().address == handle.address;
    };
    const auto found = std::ranges::find_if(dialers_, same);
    if (found == dialers_.end()) return nullptr;
    std::unique_ptr<Dialer> dialer = std::move(*found);
    dialers_.erase(found);
    return dialer;
}

Status Net::connect(int device, void *handle, std::unique_ptr<Comm> &out) {
    if (Status s = check(device); s != DTRAIN_OK) return s;
    Handle wanted;
    if (Status s = wanted.decode(handle); s != DTRAIN_OK) return s;
    std::unique_ptr<Dialer> dialer = find_dialer(wanted);
    if (dialer == nullptr) {
        int64_t deadline;
        if (__builtin_add_overflow(monotonic_clock().now_ns(), patience_ns_, &deadline))
            deadline = INT64_MAX;
        dialer =
            std::make_unique<Dialer>(*control_, *rails_[size_t(device)], wanted, who_, deadline);
        Handle::set_attempt(handle, dialer->attempt());
    }
    if (Status s = dialer->step(out); s != DTRAIN_OK) {
        Handle::set_attempt(handle, 0); // the next call is the first of another attempt
        const std::string cause = error_text();
        return fail(s, "%s: %s", cause.c_str(), dialer->text().c_str());
    }
    if (out != nullptr) {
        Handle::set_attempt(handle, 0);
        return DTRAIN_OK;
    }
    const std::lock_guard lock(mutex_);
    dialers_.push_back(std::move(dialer));
    return DTRAIN_OK;
}

Status Net::register_memory(Rail &rail, void *data, size_t bytes,
                            std::unique_ptr<Registration> &out) {
    auto made = std::make_unique<Registration>(Registration{rail});
    const transport::Device &device = rail.device();
    if (device.ops().mr_reg != nullptr && bytes > 0) {
        dtrain_mem_params_t params = {};
        params.struct_size = sizeof params;
        params.mem_type = DTRAIN_MEM_HOST;
        params.address = data;
        params.length = bytes;
        const Rail::Lock lock = rail.lock();
        if (Status s = device.ops().mr_reg(device.dev(), &params, &made->region); s != DTRAIN_OK)
            return s;
    }
    out = std::move(made);
    return DTRAIN_OK;
}

void Net::deregister(Registration &registration) {
    if (registration.region == nullptr) return;
    const Rail::Lock lock = registration.rail.lock();
    registration.rail.device().ops().mr_dereg(registration.region);
}

} // namespace dtrain::nccl
