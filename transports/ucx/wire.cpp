// The wire over UCX: its device.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/wire.h"
#include "rdm/protection.h"

#include "ucx/ids.h"

namespace dtrain::ucx {
namespace {

// Sizes of packets, head included: TCP and shared memory accept this much in one piece.
constexpr uint32_t most_packet = 8 << 10, most_tcp_packet = (128 << 10) + 64,
                   most_shared_packet = (16 << 10) + 64;
constexpr uint32_t most_shared_eager = 64 << 10; // in packets; avoids the rendezvous
constexpr uint64_t bulk_limit = UINT64_C(1) << 40;

} // namespace

dtrain_status_t Wire::failed(const char *what, ucs_status_t status) const {
    return host_.fail(status == UCS_ERR_NO_MEMORY ? DTRAIN_ERR_NO_MEMORY : DTRAIN_ERR_UNSUPPORTED,
                      "ucx: %s: %s", what, ucs_status_string(status));
}

dtrain_status_t Wire::open_context(Settings &settings) {
    quieten();
    const dtrain_status_t result = configure(host_, settings);
    if (result != DTRAIN_OK) return result;
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    // If protection is demanded, nobody may read or write by address.
    if (!rdm::protects_all(host_)) params.features |= UCP_FEATURE_RMA;
    ucp_context_h context;
    const ucs_status_t status = ucp_init(&params, settings.config.get(), &context);
    if (status != UCS_OK)
        return failed("there is no usable network (ucx.tls, ucx.devices)", status);
    context_.reset(context);
    return DTRAIN_OK;
}

dtrain_status_t Wire::check(const tp::Host &host) {
    struct Nobody : rdm::Protocol {
        void on_packet(const uint8_t *, size_t) override {}
        void on_announced(const uint8_t *, size_t, rdm::Remote *) override {}
        void on_sent(rdm::Operation *, bool) override {}
        void on_fetched(rdm::Operation *, bool) override {}
        void on_broken(rdm::Link *, const rdm::Fault &) override {}
    } nobody;
    Settings settings;
    return Wire(host, nobody).open_context(settings);
}

dtrain_status_t Wire::open(const char *) {
    entered_ = enter();
    if (!entered_)
        return host_.fail(DTRAIN_ERR_STATE,
                          "ucx: this process was forked from one that was using UCX, which cannot "
                          "be used after that; fork before, or start a program in the child");
    Settings settings;
    dtrain_status_t result = open_context(settings);
    if (result != DTRAIN_OK) return result;

    ucp_worker_params_t worker_params{};
    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucp_worker_h worker;
    ucs_status_t status = ucp_worker_create(context_.get(), &worker_params, &worker);
    if (status != UCS_OK) return failed("creating a worker (ucx.tls, ucx.devices)", status);
    worker_.reset(worker);

    result = receive(packet_id, on_packet);
    if (result == DTRAIN_OK) result = receive(bulk_id, on_bulk);
    if (result != DTRAIN_OK) return result;
    status = ucp_worker_get_efd(worker, &event_fd_);
    if (status != UCS_OK) return failed("getting a descriptor to wait for", status);
    status = create_piecemeal();
    if (status != UCS_OK) return failed("creating a type of memory", status);
    if (!read_address())
        return host_.fail(DTRAIN_ERR_LIMIT,
                          "ucx: the address has more than %zu bytes, because there are many "
                          "devices; choose fewer with ucx.devices",
                          rdm::max_fabric_address);

    ucp_worker_attr_t limits{};
    limits.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
    ucp_worker_query(worker, &limits);
    const Networks &networks = settings.networks;
    copying_ = networks.copying;
    if (copying_ && !settings.chosen)
        host_.log(DTRAIN_LOG_WARN,
                  "ucx: there is no RDMA device; UCX uses TCP (set ucx.tls to tcp if this is "
                  "intended)");
    // Data that fit in one piece of the network need not be assembled.
    const bool in_shared_memory = copying_ && networks.shared_memory;
    shares_memory_ = networks.shared_memory;
    attr_.packet_limit = std::clamp(uint32_t(limits.max_am_header), rdm::least_packet,
                                    networks.only_tcp  ? most_tcp_packet
                                    : in_shared_memory ? most_shared_packet
                                                       : most_packet);
    attr_.head_limit = attr_.packet_limit;
    attr_.copy_limit = uint32_t(Request::room);
    attr_.eager_limit = in_shared_memory ? most_shared_eager : attr_.packet_limit;
    attr_.bulk_limit = bulk_limit;
    attr_.by_processors = copying_;
    attr_.breaks_off_any_time = copying_; // UCX itself holds no memory of the caller
    // Data of a get over shared memory may be written after its link was given up.
    attr_.caps = DTRAIN_TP_CAP_PUT;
    if (!networks.shared_memory) attr_.caps |= DTRAIN_TP_CAP_GET;
    attr_.rkey_len = rkey_len;
    attr_.within_machine = networks.within_machine;
    attr_.latency_ns = networks.within_machine ? 500 : 8'000;
    attr_.bandwidth_bps = 5'000'000'000;
    if (!networks.within_machine) {
        attr_.remote_latency_ns = 10'000;
        attr_.remote_bandwidth_bps = 1'250'000'000;
    }
    return DTRAIN_OK;
}

dtrain_status_t Wire::receive(unsigned id, ucp_am_recv_callback_t callback) {
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    param.id = id;
    param.cb = callback;
    param.arg = this;
    param.flags = UCP_AM_FLAG_WHOLE_MSG;
    const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_.get(), &param);
    return status == UCS_OK ? DTRAIN_OK : failed("setting a handler of messages", status);
}

// Reads the whole address or, if that is too long, the one without shared memory.
bool Wire::read_address() {
    for (uint32_t flags : {0u, uint32_t(UCP_WORKER_ADDRESS_FLAG_NET_ONLY)}) {
        ucp_worker_attr_t attr{};
        attr.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
        attr.address_flags = flags;
        if (ucp_worker_query(worker_.get(), &attr) != UCS_OK) return false;
        const bool fits = attr.address_length <= sizeof address_;
        if (fits) {
            memcpy(address_, attr.address, attr.address_length);
            address_len_ = attr.address_length;
        }
        ucp_worker_release_address(worker_.get(), attr.address);
        if (fits) return true;
    }
    return false;
}

size_t Wire::address(uint8_t out[rdm::max_fabric_address]) {
    memcpy(out, address_, address_len_);
    return address_len_;
}

// Events between the last check and arming would wake nobody (at least verbs on soft-RoCE), nor
// does it when there is room again in the queue of a peer in shared memory.
bool Wire::arm() {
    if (shares_memory_ && !quiet()) return false;
    if (!done_.empty() || broken_links_ || ucp_worker_arm(worker_.get()) != UCS_OK) return false;
    return !ucp_worker_progress(worker_.get()) && done_.empty() && !broken_links_;
}

bool Wire::progress() {
    if (stuck_) return false;
    ucp_worker_progress(worker_.get()); // once: over TCP every check is a system call
    settle();
    if (sweep_) close_unused();
    return true;
}

bool Wire::quiet() {
    for (const Way *way = ways_.front(); way; way = ways_.next(way))
        if (!way->packets.empty() && !way->failed) return false;
    return true;
}

} // namespace dtrain::ucx
