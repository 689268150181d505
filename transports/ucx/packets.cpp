// The wire over UCX: packets.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/ids.h"
#include "ucx/wire.h"

namespace dtrain::ucx {
namespace {

constexpr uint32_t packets_at_once = 64; // of one way; each has a copy of its bytes

} // namespace

// The payload is copied: what fits in a packet is copied sooner than a request is completed.
rdm::Sent Wire::send(rdm::Link *to, const void *head, size_t len, rdm::Operation *payload) {
    auto *link = static_cast<Link *>(to);
    Way *way = link->way;
    if (way->failed) return rdm::Sent::broken;
    if (way->packets.size() >= packets_at_once) return rdm::Sent::busy;
    Request *request = begin(Request::Kind::packet, way->packets, nullptr);
    if (!request) return rdm::Sent::busy;
    const size_t total = len + (payload ? payload->memory.remaining() : 0);
    auto *bytes = static_cast<uint8_t *>(blocks_.get(total));
    if (!bytes) {
        release(request);
        return rdm::Sent::busy;
    }
    request->memory = bytes;
    request->memory_len = total;
    memcpy(bytes, head, len);
    if (payload) traffic_.copied += payload->memory.gather(bytes + len, total - len);

    ucp_request_param_t param = parameters(request);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    started(request, ucp_am_send_nbx(way->endpoint, packet_id, nullptr, 0, bytes, total, &param));
    const bool failed = request->status != UCS_OK;
    if (failed) fail(way, ucs_status_string(request->status));
    if (request->parts == 1)
        release(request);
    else
        finish_start(request);
    return failed ? rdm::Sent::broken : rdm::Sent::now;
}

ucs_status_t Wire::on_packet(void *arg, const void *, size_t, void *data, size_t len,
                             const ucp_am_recv_param_t *param) {
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))
        static_cast<Wire *>(arg)->protocol_.on_packet(static_cast<const uint8_t *>(data), len);
    return UCS_OK;
}

} // namespace dtrain::ucx
