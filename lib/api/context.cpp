// Implements dtrain_context_*.
// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/handles.h"
#include "base/fd.h"
#include "cluster/environment/environment.h"
#include "cluster/environment/launchers.h"
#include "cluster/environment/stray_variables.h"
#include "cluster/join/rendezvous.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sys/auxv.h>
#include <unistd.h>

using dtrain::fail;
using dtrain::Status;
using dtrain::api::check_handle;
using dtrain::api::guard;
using dtrain::api::guard_new;

namespace {

Status open_transports(dtrain_context &context) {
    std::string_view rest = context.options.text("transports");
    std::string reasons;
    const bool verified = context.options.number("verify") != 0;
    while (!rest.empty()) {
        std::string_view name = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        if (name.empty()) continue;
        std::vector<std::unique_ptr<dtrain::transport::Device>> devices;
        Status s = dtrain::transport::Device::open(*context.host, name, context.options, devices);
        if (verified)
            for (auto device = devices.begin(); s == DTRAIN_OK && device != devices.end(); ++device)
                s = (*device)->verify();
        if (s == DTRAIN_ERR_UNSUPPORTED) {
            context.log.write(DTRAIN_LOG_WARN, "%s; the transport is not used",
                              dtrain::error_text());
            reasons += (reasons.empty() ? "" : "; ") + std::string(dtrain::error_text());
            continue;
        }
        if (s != DTRAIN_OK) return s;
        const int64_t eager_bytes = context.options.number("eager.bytes");
        for (auto &device : devices) {
            if (eager_bytes >= 0) device->limit_eager(uint64_t(eager_bytes));
            if (s = context.agent->add_device(std::move(device)); s != DTRAIN_OK) return s;
        }
    }
    if (context.agent->devices().empty())
        return fail(
            DTRAIN_ERR_CONFIG,
            "none of the transports \"%s\" (option transports) can be used on this machine: %s",
            std::string(context.options.text("transports")).c_str(),
            reasons.empty() ? "the option is empty" : reasons.c_str());
    return DTRAIN_OK;
}

// Warns once per process, however many contexts it makes. Privileged programs (AT_SECURE) must not
// trust the environment, so it is not read.
void warn_of_stray_variables(dtrain::Log &log) {
    static std::atomic<bool> done{false};
    if (getauxval(AT_SECURE) != 0 || done.exchange(true)) return;
    for (const std::string &line : dtrain::cluster::stray_variables(environ))
        log.write(DTRAIN_LOG_WARN, "%s", line.c_str());
}

// Passes the host the facts by which transports choose their devices, as far as the environment
// tells them.
void find_facts(dtrain::transport::Host &host, int64_t deadline_ns) {
    const auto env = [](const char *name) { return std::getenv(name); };
    const dtrain::cluster::LocalRank local = dtrain::cluster::find_local_rank(env);
    host.set_fact("local.rank", std::to_string(local.rank));
    host.set_fact("local.size", std::to_string(local.size));
    dtrain::cluster::Identity identity;
    if (find_identity({}, env, identity) != DTRAIN_OK) return; // joining the job reports the error
    if (!identity.rendezvous.starts_with("tcp://")) return;    // only tcp:// has a route
    std::string own;
    (void)dtrain::cluster::own_address(identity.rendezvous, deadline_ns, own); // may fail
    if (!own.empty()) host.set_fact("route.address", std::move(own));
}

Status start_threads(dtrain_context &context) {
    using dtrain::engine::Backgrounds;
    const std::string_view progress = context.options.text("progress");
    context.backgrounds = std::make_unique<Backgrounds>(dtrain::monotonic_clock());
    const bool manual = progress == "manual";
    context.timeline =
        std::make_unique<dtrain::api::Timeline>(*context.agent, context.options.text("timeline"),
                                                manual ? context.backgrounds.get() : nullptr);
    if (manual) {
        context.agent->set_helper(
            {.serve = [](void *self) { static_cast<Backgrounds *>(self)->serve(); },
             .arg = context.backgrounds.get()});
        return DTRAIN_OK;
    }
    if (Status s = context.backgrounds->start("dtrain-control"); s != DTRAIN_OK) return s;
    context.helper = std::make_unique<dtrain::engine::Helper>(*context.agent);
    return context.helper->start(progress == "thread");
}

Status open_context(dtrain_context &context) {
    static constexpr std::pair<std::string_view, int32_t> levels[] = {{"error", DTRAIN_LOG_ERROR},
                                                                      {"warn", DTRAIN_LOG_WARN},
                                                                      {"info", DTRAIN_LOG_INFO},
                                                                      {"debug", DTRAIN_LOG_DEBUG}};
    for (auto [name, level] : levels)
        if (context.options.text("log.level") == name) context.log.set_level(level);
    warn_of_stray_variables(context.log);
    dtrain::cluster::JoinParams join;
    if (Status s = read_join_options(context.options, join); s != DTRAIN_OK) return s;
    dtrain::Clock &clock = dtrain::monotonic_clock();
    context.host = std::make_unique<dtrain::transport::Host>(context.options, context.log, clock,
                                                             join.secret, join.protection.data);
    find_facts(*context.host, dtrain::cluster::join_deadline(context.options, 0));
    context.agent = std::make_unique<dtrain::engine::Agent>(clock, context.log);
    context.agent->set_stall_check(context.options.number("stall.check"));
    if (Status s = context.agent->open(); s != DTRAIN_OK) return s;
    if (Status s = context.domains.open(context.agent->wake_fd()); s != DTRAIN_OK) return s;
    if (Status s = open_transports(context); s != DTRAIN_OK) return s;
    return start_threads(context);
}

} // namespace

dtrain_status_t dtrain_context_create(uint32_t api_version, const dtrain_options_t *options,
                                      dtrain_context_t **context_p) {
    if (context_p == nullptr) return fail(DTRAIN_ERR_INVALID, "context_create: context_p is NULL");
    if (api_version >> 16 != DTRAIN_API_VERSION >> 16 || api_version == 0)
        return fail(DTRAIN_ERR_VERSION,
                    "the program was compiled for API %u.%u, but this is libdtrain %s "
                    "with API %u.%u; link a matching one",
                    api_version >> 16, api_version & 0xffff, DTRAIN_VERSION,
                    DTRAIN_API_VERSION >> 16, DTRAIN_API_VERSION & 0xffff);
    return guard_new([&]() -> Status {
        dtrain::api::watch_forks();
        const dtrain::StandardDescriptors occupied; // so that no library opens files as 0 to 2
        auto fresh = std::make_unique<dtrain_context>();
        if (options != nullptr) {
            if (Status s = check_handle(options, "options"); s != DTRAIN_OK) return s;
            std::lock_guard lock(const_cast<dtrain_options_t *>(options)->mutex);
            fresh->options = options->options;
        } else if (Status s = dtrain::Options::from_environment(fresh->options); s != DTRAIN_OK) {
            return s;
        }
        if (Status s = open_context(*fresh); s != DTRAIN_OK) return s;
        *context_p = fresh.release();
        return DTRAIN_OK;
    });
}

dtrain_status_t dtrain_context_destroy(dtrain_context_t *context) {
    if (context == nullptr) return DTRAIN_OK;
    if (!context->birth.here()) return DTRAIN_OK; // forked: the parent owns threads and sockets
    if (uint32_t n = context->children.load(); n != 0)
        return fail(DTRAIN_ERR_BUSY,
                    "the context still has %u communicators, servers, queues or "
                    "registrations; destroy them first",
                    n);
    return guard([&] {
        // Results of operations that have ended may be on their way to accelerators.
        context->agent->wait_until([&] { return !context->domains.in_use(); }, INT64_MAX);
        delete context;
        return DTRAIN_OK;
    });
}

int32_t dtrain_context_progress(dtrain_context_t *context) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    int done = 0;
    Status s = guard([&] {
        if (context->helper == nullptr) context->backgrounds->serve();
        done = context->agent->work();
        return DTRAIN_OK;
    });
    return s == DTRAIN_OK ? done : s;
}

dtrain_status_t dtrain_context_set_log(dtrain_context_t *context, dtrain_log_fn sink, void *arg) {
    if (Status s = check_handle(context, "context"); s != DTRAIN_OK) return s;
    context->log.set_sink(sink, arg);
    return DTRAIN_OK;
}
