// The objects of the wire: the way to a peer's worker, links to it, and operations in progress.
//
// UCX pairs the endpoints of two workers, and closing one breaks its partner; so all links to one
// address share one endpoint, called Way here.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/list.h"
#include "rdm/registrations.h"

#include <ucp/api/ucp.h>

namespace dtrain::ucx {

class Wire;
struct Link;
struct Way;

// An operation that UCX has to complete. An announced message has one from the beginning, so that
// fetching it needs no memory.
struct Request : rdm::Remote {
    enum class Kind : uint8_t { packet, bulk, fetch, put, get };

    Kind kind = Kind::packet;
    uint8_t parts = 0; // number of parts that UCX has to complete
    ucs_status_t status = UCS_OK;
    Wire *wire = nullptr;
    class Requests *list = nullptr;      // the list that contains it
    rdm::Operation *operation = nullptr; // nullptr: the protocol does not wait for it
    Way *way = nullptr;                  // the way that fails if this request does
    // Memory of the wire, memory_len bytes: a packet, or a head.
    void *memory = nullptr;
    size_t memory_len = 0;
    ucp_rkey_h rkey = nullptr;
    void *announced = nullptr; // UCX's descriptor of a message of bulk_len bytes
    uint64_t bulk_len = 0;
    tp::Link<Request> link, done;
    static constexpr size_t room = 256;
    union {
        ucp_dt_iov_t pieces[tp::max_iov];
        uint8_t bytes[room]; // a small packet, or the head_len bytes before the operation's memory
    };
    size_t head_len = 0;
};

struct Buffer { // in the form that UCX accepts
    void *address = nullptr;
    size_t count = 0;
};

// Memory whose bytes UCX requests, or delivers, piece by piece.
inline Buffer piecemeal(Request *request, ucp_datatype_t type, ucp_request_param_t &param) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = type;
    return {request, 1};
}

class Requests {
  public:
    bool empty() const { return list_.empty(); }
    uint32_t size() const { return size_; }
    Request *front() const { return list_.front(); }
    // Moves the request here from the list that contains it, if any.
    void add(Request *request) {
        if (request->list) request->list->remove(request);
        request->list = this;
        list_.push_back(request);
        size_++;
    }
    void remove(Request *request) {
        list_.remove(request);
        request->list = nullptr;
        size_--;
    }

  private:
    tp::List<Request, &Request::link> list_;
    uint32_t size_ = 0;
};

struct Link : rdm::Link {
    Way *way = nullptr;
    rdm::Fault broken; // the protocol does not know yet
    Requests requests; // those with an operation
    tp::Link<Link> link;
};

struct Way {
    Wire *wire = nullptr;
    ucp_ep_h endpoint = nullptr;
    bool failed = false; // nothing more can be sent
    uint8_t address[rdm::max_fabric_address];
    size_t address_len = 0;
    Requests packets;
    tp::List<Link, &Link::link> links;
    tp::Link<Way> link;
};

struct Registration : rdm::Registered {
    ucp_mem_h handle = nullptr;
};

} // namespace dtrain::ucx
