// The wire over UCX: ways (endpoints) to other workers, and links.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/wire.h"

namespace dtrain::ucx {
namespace {

constexpr uint32_t unused_ways_at_most = 64;
constexpr int64_t patience_ns = 2'000'000'000; // for UCX to return memory

} // namespace

Wire::~Wire() {
    while (Way *way = ways_.front()) remove(way);
    worker_.reset();
    while (Request *request = loose_.front()) release(request);
    if (piecemeal_) ucp_dt_destroy(piecemeal_);
    context_.reset();
    if (entered_) ucx::leave();
}

Way *Wire::way_to(const uint8_t *address, size_t len) {
    for (Way *way = ways_.front(); way; way = ways_.next(way))
        if (!way->failed && way->address_len == len && !memcmp(way->address, address, len)) {
            if (way->links.empty()) unused_ways_--;
            return way;
        }
    std::unique_ptr<Way> way(new (std::nothrow) Way);
    if (!way || len > sizeof way->address) {
        host_.fail(DTRAIN_ERR_NO_MEMORY, "ucx: no memory for another peer");
        return nullptr;
    }
    memcpy(way->address, address, len);
    way->address_len = len;
    way->wire = this;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t *>(way->address);
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {on_error, way.get()};
    const ucs_status_t status = ucp_ep_create(worker_.get(), &params, &way->endpoint);
    if (status != UCS_OK) {
        failed("no route to the peer (ucx.tls, ucx.devices)", status);
        return nullptr;
    }
    ways_.push_back(way.get());
    return way.release();
}

rdm::Link *Wire::link(const uint8_t *address, size_t len) {
    std::unique_ptr<Link> link(new (std::nothrow) Link);
    if (!link || !(link->way = way_to(address, len))) return nullptr;
    link->way->links.push_back(link.get());
    return link.release();
}

// Operations in progress on this link cannot be ended alone: its way is closed with it.
void Wire::unlink(rdm::Link *gone) {
    std::unique_ptr<Link> link(static_cast<Link *>(gone));
    Way *way = link->way;
    way->links.remove(link.get());
    if (!link->requests.empty()) fail(way, {.why = "the connection to the peer was given up"});
    if (way->failed) close(way);
    if (!link->requests.empty()) wait_for(*link);
    while (Request *request = link->requests.front()) abandon(request);
    if (!way->links.empty()) return;
    if (way->failed)
        remove(way);
    else
        leave(way);
}

// Networks that copy may wait for the peer. Operations that are not done by then do not access the
// caller's memory any more.
void Wire::wait_for(const Link &link) {
    const int64_t end = host_.now_ns() + (copying_ ? 0 : patience_ns);
    do {
        ucp_worker_progress(worker_.get());
        settle();
        if (link.requests.empty()) return;
    } while (host_.now_ns() < end);
    stuck_ = !copying_;
}

// A way is kept when no link uses it any more: closing it would break its partner, which the peer
// may be about to use; over shared memory even without an error.
void Wire::leave(Way *way) {
    ways_.remove(way);
    ways_.push_back(way);
    unused_ways_++;
    sweep_ = true;
}

// Those longest unused are closed first.
void Wire::close_unused() {
    sweep_ = false;
    for (Way *way = ways_.front(), *next; way; way = next) {
        next = ways_.next(way);
        if (!way->links.empty()) continue;
        if (!way->failed && (unused_ways_ <= unused_ways_at_most || !way->packets.empty()))
            continue;
        unused_ways_--;
        remove(way);
    }
}

rdm::Fault Wire::fault(ucs_status_t status) {
    return {.why = ucs_status_string(status),
            .status = status == UCS_ERR_NO_MEMORY ? DTRAIN_ERR_NO_MEMORY : DTRAIN_ERR_PEER};
}

void Wire::fail(Way *way, const rdm::Fault &fault) {
    if (std::exchange(way->failed, true)) return;
    for (Link *link = way->links.front(); link; link = way->links.next(link)) link->broken = fault;
    broken_links_ = sweep_ = true;
}

void Wire::on_error(void *way, ucp_ep_h, ucs_status_t status) {
    auto *failed = static_cast<Way *>(way);
    failed->wire->fail(failed, fault(status));
}

// UCX completes the operations in progress, in ucp_worker_progress() at the latest.
void Wire::close(Way *way) {
    if (!way->endpoint) return;
    while (Request *packet = way->packets.front()) loose_.add(packet);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t closing =
        ucp_ep_close_nbx(std::exchange(way->endpoint, nullptr), &param);
    if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
}

void Wire::remove(Way *way) {
    close(way);
    ways_.remove(way);
    delete way;
}

} // namespace dtrain::ucx
