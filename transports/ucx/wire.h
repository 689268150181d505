// The wire of transports/rdm over UCX: one worker per device. Packets are eager active messages,
// bulk messages are active messages by rendezvous, and remote memory is UCX's.
//
// UCX does not define from where it calls back. So completions and failures are only noted there,
// and settle() reports them to the protocol. Data arrive only within ucp_worker_progress().
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/pool.h"
#include "ucx/library.h"
#include "ucx/parts.h"

#include <memory>

namespace dtrain::ucx {

struct CleanUp {
    void operator()(ucp_context_h context) const { ucp_cleanup(context); }
    void operator()(ucp_worker_h worker) const { ucp_worker_destroy(worker); }
};

class Wire final : public rdm::Wire {
  public:
    Wire(const tp::Host &host, rdm::Protocol &protocol) : host_(host), protocol_(protocol) {}
    ~Wire() override;

    // Whether there is anything to open; otherwise the error text is set.
    static dtrain_status_t check(const tp::Host &host);

    dtrain_status_t open(const char *device) override;
    const rdm::WireAttr &attr() const override { return attr_; }
    size_t address(uint8_t out[rdm::max_fabric_address]) override;
    std::string route(const uint8_t *, size_t) override {
        return "by the devices that UCX chose; options ucx.tls and ucx.devices choose others";
    }
    int event_fd() const override { return event_fd_; }
    bool arm() override;
    bool progress() override;
    bool quiet() override;

    rdm::Link *link(const uint8_t *address, size_t len) override;
    void unlink(rdm::Link *link) override;

    rdm::Sent send(rdm::Link *link, const void *head, size_t len, rdm::Operation *payload) override;
    rdm::Sent announce(rdm::Link *link, const void *head, size_t len,
                       rdm::Operation *bulk) override;
    bool withdraw(rdm::Operation *bulk) override;
    void break_off(rdm::Operation *place) override;
    void fetch(rdm::Link *link, rdm::Remote *remote, rdm::Operation *place) override;
    void drop(rdm::Link *link, rdm::Remote *remote) override;

    dtrain_status_t reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) override;
    void dereg(dtrain_tp_mr_t *mr) override;
    dtrain_status_t rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) override;
    rdm::RegistrationCounts registrations() const override {
        return {.count = registered_.count(), .bytes = registered_.bytes()};
    }
    rdm::Sent put(rdm::Link *link, rdm::Operation *from, uint64_t remote_address,
                  const void *rkey) override;
    rdm::Sent get(rdm::Link *link, rdm::Operation *into, uint64_t remote_address,
                  const void *rkey) override;

  private:
    dtrain_status_t open_context(Settings &settings);
    dtrain_status_t failed(const char *what, ucs_status_t status) const;
    dtrain_status_t receive(unsigned id, ucp_am_recv_callback_t callback);
    bool read_address();

    // Operations in progress (requests.cpp).
    Request *begin(Request::Kind kind, Requests &list, rdm::Operation *operation);
    ucp_request_param_t parameters(Request *request) const;
    void started(Request *request, ucs_status_ptr_t result);
    void finish_start(Request *request);
    void release(Request *request);
    void complete(Request *request);
    void tell(Request::Kind kind, rdm::Operation *operation, bool ok);
    void abandon(Request *request);
    void settle();
    static void on_part(void *ucx, ucs_status_t status, void *request);
    static void on_received(void *ucx, ucs_status_t status, size_t len, void *request);

    // Ways and links (link.cpp).
    Way *way_to(const uint8_t *address, size_t len);
    static rdm::Fault fault(ucs_status_t status);
    void fail(Way *way, const rdm::Fault &fault);
    void wait_for(const Link &link);
    void close(Way *way);
    void remove(Way *way);
    void leave(Way *way);
    void close_unused();
    static void on_error(void *way, ucp_ep_h endpoint, ucs_status_t status);

    ucs_status_t create_piecemeal();
    void give_back(Request *announced);
    static ucs_status_t on_packet(void *wire, const void *head, size_t head_len, void *data,
                                  size_t len, const ucp_am_recv_param_t *param);
    static ucs_status_t on_bulk(void *wire, const void *head, size_t head_len, void *data,
                                size_t len, const ucp_am_recv_param_t *param);
    rdm::Sent remote(Request::Kind kind, rdm::Link *link, rdm::Operation *operation,
                     uint64_t remote_address, const void *rkey);
    void name_registration(const tp::IovCursor &memory, const void *piece, uint64_t len,
                           ucp_request_param_t &param) const;

    const tp::Host host_;
    rdm::Protocol &protocol_;
    bool entered_ = false;
    rdm::WireAttr attr_;
    std::unique_ptr<std::remove_pointer_t<ucp_context_h>, CleanUp> context_;
    std::unique_ptr<std::remove_pointer_t<ucp_worker_h>, CleanUp> worker_;
    uint8_t address_[rdm::max_fabric_address];
    size_t address_len_ = 0;
    int event_fd_ = -1;
    ucp_datatype_t piecemeal_ = 0;
    tp::Pool<Request> requests_;
    Request *arriving_ = nullptr; // announced by the UCX callback that is running
    tp::BlockPool blocks_;
    Requests loose_; // of no link or way: announced messages, and requests of closed ways
    tp::List<Way, &Way::link> ways_;
    tp::List<Request, &Request::done> done_; // not reported to the protocol yet
    bool broken_links_ = false;              // some links are broken and not reported yet
    rdm::Registrations registered_;          // by the caller; UCX registers the rest
    uint32_t unused_ways_ = 0;
    bool sweep_ = false;         // some unused ways may have to be closed
    bool copying_ = false;       // no network accesses processes' memory by itself
    bool shares_memory_ = false; // with peers, perhaps
    bool stuck_ = false;         // UCX did not return memory: it is not called any more
};

} // namespace dtrain::ucx
