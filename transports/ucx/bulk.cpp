// The wire over UCX: bulk messages, which are active messages by rendezvous.
//
// Where the network copies anyway, UCX is not told where the memory is: it requests bytes, or
// delivers them, piece by piece (Piecemeal). So the memory of a message can be taken back at any
// time.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/ids.h"
#include "ucx/wire.h"

namespace dtrain::ucx {
namespace {

// Describes the memory to UCX; the pieces are stored in the request.
Buffer describe(const tp::IovCursor &memory, Request *request, ucp_request_param_t &param) {
    static_assert(sizeof(ucp_dt_iov_t) == sizeof(iovec));
    const auto n = memory.describe(reinterpret_cast<iovec *>(request->pieces), memory.remaining());
    if (n > 1) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = ucp_dt_make_iov();
        return {request->pieces, size_t(n)};
    }
    return n ? Buffer{request->pieces[0].buffer, request->pieces[0].length} : Buffer{};
}

// The memory from `offset` on; empty for an operation that was given up.
tp::IovCursor rest(const Request &request, uint64_t offset) {
    tp::IovCursor rest;
    if (request.operation) rest = request.operation->memory;
    rest.advance(std::min(offset, rest.remaining()));
    return rest;
}

} // namespace

ucs_status_t Wire::create_piecemeal() {
    ucp_generic_dt_ops_t type{};
    type.start_pack = [](void *, const void *request, size_t) {
        return const_cast<void *>(request);
    };
    type.start_unpack = [](void *, void *request, size_t) { return request; };
    type.packed_size = [](void *request) -> size_t {
        return static_cast<Request *>(request)->bulk_len;
    };
    type.pack = [](void *user, size_t offset, void *to, size_t len) -> size_t {
        const auto *request = static_cast<const Request *>(user);
        const size_t part = std::min<uint64_t>(len, request->bulk_len - offset);
        auto *out = static_cast<uint8_t *>(to);
        const size_t head =
            offset < request->head_len ? std::min(request->head_len - offset, part) : 0;
        if (head) memcpy(out, request->bytes + offset, head);
        const size_t from = offset + head - request->head_len;
        const size_t known = rest(*request, from).gather(out + head, part - head);
        request->wire->traffic_.copied += known;
        memset(out + head + known, 0, part - head - known);
        return part;
    };
    type.unpack = [](void *user, size_t offset, const void *from, size_t len) {
        const auto *request = static_cast<const Request *>(user);
        request->wire->traffic_.copied += rest(*request, offset).scatter(from, len);
        return UCS_OK;
    };
    type.finish = [](void *) {};
    return ucp_dt_create_generic(&type, nullptr, &piecemeal_);
}

rdm::Sent Wire::announce(rdm::Link *to, const void *head, size_t len, rdm::Operation *bulk) {
    auto *link = static_cast<Link *>(to);
    if (link->way->failed) return rdm::Sent::broken;
    Request *request = begin(Request::Kind::bulk, link->requests, bulk);
    if (!request) return rdm::Sent::busy;
    request->way = link->way;
    request->memory = blocks_.get(len); // UCX sends the head when it can
    if (!request->memory) {
        release(request);
        return rdm::Sent::busy;
    }
    request->memory_len = len;
    memcpy(request->memory, head, len);

    ucp_request_param_t param = parameters(request);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_RNDV;
    request->bulk_len = bulk->memory.remaining();
    bulk->wire = request;
    if (!copying_) traffic_.in_place += request->bulk_len;
    const auto [address, count] =
        copying_ ? piecemeal(request, piecemeal_, param) : describe(bulk->memory, request, param);
    // Not for several pieces, since UCX accepts no handle for those; nor at the receiver: UCX 1.13
    // confuses the devices of a receiver's handle.
    if (!(param.op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE))
        name_registration(bulk->memory, address, count, param);
    started(request, ucp_am_send_nbx(link->way->endpoint, bulk_id, request->memory, len, address,
                                     count, &param));
    finish_start(request);
    return rdm::Sent::later;
}

// Bytes that UCX requests later belong to no operation; the receiver's side hears of the withdrawal
// before they arrive.
bool Wire::withdraw(rdm::Operation *bulk) {
    auto *request = static_cast<Request *>(bulk->wire);
    if (!copying_) return false;
    request->operation = nullptr;
    loose_.add(request);
    return true;
}

void Wire::break_off(rdm::Operation *place) {
    auto *request = static_cast<Request *>(place->wire);
    request->status = UCS_ERR_CANCELED;
    Request *end = begin(Request::Kind::fetch, *request->list, place);
    if (!end) return; // then it ends with what the sender sends
    request->operation = nullptr;
    loose_.add(request);
    end->status = UCS_ERR_CANCELED;
    finish_start(end);
}

void Wire::fetch(rdm::Link *from, rdm::Remote *remote, rdm::Operation *place) {
    auto *link = static_cast<Link *>(from);
    auto *request = static_cast<Request *>(remote);
    request->operation = place;
    request->way = link->way;
    link->requests.add(request);
    const uint64_t wanted = place->memory.remaining(), len = request->bulk_len;
    ucp_request_param_t param = parameters(request);
    param.cb.recv_am = on_received;
    place->wire = request;
    // UCX always receives a whole message.
    const bool copies = copying_ || len > wanted;
    const Buffer into =
        copies ? piecemeal(request, piecemeal_, param) : describe(place->memory, request, param);
    if (!copies) traffic_.in_place += wanted;
    if (len < wanted) request->status = UCS_ERR_MESSAGE_TRUNCATED;
    if (request->status == UCS_OK)
        started(request, ucp_am_recv_data_nbx(worker_.get(), request->announced, into.address,
                                              into.count, &param));
    else
        give_back(request);
    finish_start(request);
}

void Wire::drop(rdm::Link *, rdm::Remote *remote) {
    auto *request = static_cast<Request *>(remote);
    give_back(request);
    release(request);
}

// A message that is not fetched: returns the memory to its sender.
void Wire::give_back(Request *announced) {
    if (announced == arriving_)
        arriving_ = nullptr; // on_bulk() tells UCX
    else
        ucp_am_data_release(worker_.get(), announced->announced);
}

// Returning UCS_OK gives the announced message back to its sender.
ucs_status_t Wire::on_bulk(void *arg, const void *head, size_t head_len, void *data, size_t len,
                           const ucp_am_recv_param_t *param) {
    auto *wire = static_cast<Wire *>(arg);
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) return UCS_OK;
    Request *request = wire->begin(Request::Kind::fetch, wire->loose_, nullptr);
    if (!request) return UCS_OK;
    request->announced = data;
    request->bulk_len = len;
    wire->arriving_ = request;
    wire->protocol_.on_announced(static_cast<const uint8_t *>(head), head_len, request);
    return std::exchange(wire->arriving_, nullptr) ? UCS_INPROGRESS : UCS_OK;
}

} // namespace dtrain::ucx
