// The wire over UCX: packets.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/ids.h"
#include "ucx/wire.h"

namespace dtrain::ucx {
namespace {

constexpr uint32_t packets_at_once = 64; // per way, with a copy of their bytes

} // namespace

// Small packets are assembled here; for others UCX sends the payload from its place when it has
// room for it, which is nearly always at once.
rdm::Sent Wire::send(rdm::Link *to, const void *head, size_t len, rdm::Operation *payload) {
    auto *link = static_cast<Link *>(to);
    Way *way = link->way;
    if (way->failed) return rdm::Sent::broken;
    if (way->packets.size() >= packets_at_once) return rdm::Sent::busy;
    const size_t total = len + (payload ? payload->memory.remaining() : 0);
    const bool in_place = payload && total > Request::room && len <= Request::room;
    Request *request = in_place ? begin(Request::Kind::packet, link->requests, payload)
                                : begin(Request::Kind::packet, way->packets, nullptr);
    if (!request) return rdm::Sent::busy;
    uint8_t *bytes = request->bytes;
    if (!in_place && total > Request::room) {
        request->memory = bytes = static_cast<uint8_t *>(blocks_.get(total));
        request->memory_len = total;
        if (!bytes) {
            release(request);
            return rdm::Sent::busy;
        }
    }
    memcpy(bytes, head, len);
    ucp_request_param_t param = parameters(request);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    Buffer from{bytes, total};
    if (in_place) {
        request->way = way;
        request->head_len = len;
        request->bulk_len = total;
        from = piecemeal(request, piecemeal_, param);
    } else if (payload) {
        traffic_.copied += payload->memory.gather(bytes + len, total - len);
    }
    started(request, ucp_am_send_nbx(way->endpoint, packet_id, nullptr, 0, from.address, from.count,
                                     &param));
    const bool failed = request->status != UCS_OK, over = request->parts == 1;
    if (failed) fail(way, fault(request->status));
    if (over)
        release(request);
    else
        finish_start(request);
    if (failed) return rdm::Sent::broken;
    return in_place && !over ? rdm::Sent::later : rdm::Sent::now;
}

ucs_status_t Wire::on_packet(void *arg, const void *, size_t, void *data, size_t len,
                             const ucp_am_recv_param_t *param) {
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))
        static_cast<Wire *>(arg)->protocol_.on_packet(static_cast<const uint8_t *>(data), len);
    return UCS_OK;
}

} // namespace dtrain::ucx
