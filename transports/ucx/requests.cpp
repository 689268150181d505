// The wire over UCX: operations in progress, and how the protocol learns that they are over.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/wire.h"

namespace dtrain::ucx {

// nullptr: no memory. finish_start() completes the start, after all its parts.
Request *Wire::begin(Request::Kind kind, Requests &list, rdm::Operation *operation) {
    Request *request = requests_.get();
    if (!request) return nullptr;
    request->kind = kind;
    request->parts = 1;
    request->wire = this;
    request->operation = operation;
    list.add(request);
    return request;
}

ucp_request_param_t Wire::parameters(Request *request) const {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.user_data = request;
    param.cb.send = on_part;
    return param;
}

// Handles UCX's answer for one part of the request.
void Wire::started(Request *request, ucs_status_ptr_t result) {
    if (UCS_PTR_IS_ERR(result))
        request->status = UCS_PTR_STATUS(result);
    else if (result)
        request->parts++;
}

void Wire::finish_start(Request *request) {
    if (!--request->parts) done_.push_back(request);
}

void Wire::on_part(void *ucx, ucs_status_t status, void *user) {
    auto *request = static_cast<Request *>(user);
    if (status != UCS_OK) request->status = status;
    ucp_request_free(ucx);
    if (!--request->parts) request->wire->done_.push_back(request);
}

void Wire::on_received(void *ucx, ucs_status_t status, size_t, void *user) {
    on_part(ucx, status, user);
}

void Wire::release(Request *request) {
    if (request->memory) blocks_.put(request->memory, request->memory_len);
    if (request->rkey) ucp_rkey_destroy(request->rkey);
    request->list->remove(request);
    requests_.put(request);
}

void Wire::complete(Request *request) {
    const bool ok = request->status == UCS_OK;
    const Request::Kind kind = request->kind;
    rdm::Operation *operation = request->operation;
    // The two sides disagree about it, although neither has reported an error.
    if (!ok && operation && request->way) fail(request->way, fault(request->status));
    release(request);
    if (operation) tell(kind, operation, ok);
}

void Wire::tell(Request::Kind kind, rdm::Operation *operation, bool ok) {
    if (kind == Request::Kind::fetch || kind == Request::Kind::get)
        protocol_.on_fetched(operation, ok);
    else
        protocol_.on_sent(operation, ok);
}

// UCX has not completed it, but does not access the memory any more.
void Wire::abandon(Request *request) {
    loose_.add(request);
    tell(request->kind, std::exchange(request->operation, nullptr), false);
}

// Reports the noted completions and failures to the protocol.
void Wire::settle() {
    while (Request *request = done_.pop_front()) complete(request);
    while (broken_links_) {
        broken_links_ = false;
        for (Way *way = ways_.front(); way; way = ways_.next(way))
            for (Link *link = way->links.front(); link; link = way->links.next(link))
                if (const rdm::Fault broken = std::exchange(link->broken, {}); broken.why)
                    protocol_.on_broken(link, broken);
    }
}

} // namespace dtrain::ucx
