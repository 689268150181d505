// A device of another transport whose sends are tampered with.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/completions.h"
#include "common/iov.h"
#include "common/list.h"
#include "common/pool.h"
#include "settings.h"

#include <cstdint>
#include <memory>

namespace dtrain::tp::fault {

class Device;

struct Endpoint {
    Device *device;
    dtrain_tp_ep_t *inner; // nullptr: broken
    uint64_t cookie;       // of connect()
};

// A send, put or get; its address is the cookie for the wrapped transport.
struct Operation {
    Endpoint *endpoint = nullptr; // nullptr: it was disconnected meanwhile
    uint32_t kind = 0;            // DTRAIN_TP_SEND, _PUT or _GET
    uint64_t cookie = 0, tag = 0, length = 0;
    dtrain_status_t status = DTRAIN_OK;
    bool reset = false;   // its endpoint was broken on purpose
    uint32_t to_post = 0; // how often it must still be passed to the wrapped transport
    uint32_t posted = 0;  // number of completions still to come
    uint64_t hold = 0;    // calls of progress() to wait before it is passed
    dtrain_tp_iov_t iov[max_iov];
    uint32_t n = 0;
    std::unique_ptr<uint8_t[]> changed; // what is sent in place of the caller's bytes
    Link<Operation> all, held;
};

struct Counts {
    uint64_t connects = 0, sends = 0, dropped = 0, truncated = 0, flipped = 0, duplicated = 0,
             resets = 0, delayed = 0;
};

class Device {
  public:
    Device(const dtrain_tp_host_t *host, const dtrain_tp_plugin_t &plugin,
           const Settings &settings);
    ~Device();

    dtrain_status_t connect(const void *address, size_t len, uint64_t cookie, Endpoint **out);
    void disconnect(Endpoint *endpoint);
    void withdraw(uint64_t cookie);
    dtrain_status_t send(Endpoint &endpoint, uint64_t tag, const dtrain_tp_iov_t *iov, uint32_t n,
                         uint64_t cookie);
    // Passes on a put() or get(): issue(inner cookie) hands it to the wrapped transport.
    template <class Issue>
    dtrain_status_t pass(Endpoint &endpoint, uint32_t kind, uint64_t cookie, Issue &&issue) {
        if (!endpoint.inner) return refuse_broken();
        Operation *operation = accept(endpoint, kind, cookie);
        if (!operation) return DTRAIN_ERR_NO_MEMORY;
        const dtrain_status_t status = issue(inner_cookie(operation));
        if (status == DTRAIN_OK)
            operation->posted = 1;
        else
            forget(operation);
        return status;
    }
    int32_t progress(dtrain_tp_done_t *done, uint32_t max);
    dtrain_status_t refuse_broken() const; // the result of operations on a broken endpoint
    bool idle() const { return own_.empty() && held_.empty(); }

    const Host host;
    const Settings settings;
    dtrain_tp_ops_t ops{}; // operations of the wrapped transport; missing ones are nullptr
    dtrain_tp_dev_t *inner = nullptr;
    uint64_t max_message = 0;

  private:
    static uint64_t inner_cookie(const Operation *operation) {
        return reinterpret_cast<uintptr_t>(operation);
    }
    Operation *accept(Endpoint &endpoint, uint32_t kind, uint64_t cookie);
    void forget(Operation *operation);
    void complete(Operation *operation, dtrain_status_t status);
    bool chance(uint64_t per_thousand);
    void tamper(Operation &operation);
    void flip(Operation &operation);
    dtrain_status_t post(Operation &operation);
    bool must_wait(const Operation &operation) const;
    void release_held();
    template <class Which> void drop_held(const Which &which, dtrain_status_t status);
    void withdraw_inner(uint64_t cookie);
    void break_endpoint(Endpoint &endpoint);
    bool translate(dtrain_tp_done_t &done);

    uint64_t random_;
    Counts counts_;
    // Completions that the wrapped transport does not report; one place per operation.
    Completions own_;
    Pool<Operation> pool_;
    List<Operation, &Operation::all> all_;
    List<Operation, &Operation::held> held_; // in the order of sending
};

} // namespace dtrain::tp::fault
