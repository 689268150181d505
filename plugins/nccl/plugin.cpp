// The one implementation behind the tables of all versions.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/plugin.h"

#include "base/status.h"
#include "nccl/net.h"

#include <atomic>
#include <exception>
#include <new>

namespace dtrain::nccl {
namespace {

// Never destroyed at the program's end: NCCL's threads may still run then.
struct Plugin {
    std::mutex mutex;
    std::unique_ptr<Net> net;
    int contexts = 0; // init() without finalize()
};
Plugin &plugin() {
    static Plugin &one = *new Plugin;
    return one;
}
std::atomic<Logger> logger_of_nccl{nullptr};

void write_line(void *, int32_t level, const char *line) {
    const Logger logger = logger_of_nccl;
    if (logger == nullptr) return;
    const int nccl_level = level <= DTRAIN_LOG_WARN ? log_warn : log_info;
    logger(nccl_level, log_net, "dtrain", 0, "NET/dtrain: %s", line);
}

struct Translation {
    Status from;
    Result to;
};
constexpr Translation translations[] = {
    {DTRAIN_ERR_PEER, Result::remote_error},         {DTRAIN_ERR_CANCELED, Result::remote_error},
    {DTRAIN_ERR_TIMEOUT, Result::remote_error},      {DTRAIN_ERR_AUTH, Result::remote_error},
    {DTRAIN_ERR_VERSION, Result::remote_error},      {DTRAIN_ERR_INVALID, Result::invalid_argument},
    {DTRAIN_ERR_TRUNCATED, Result::invalid_argument}};

Result report(const char *call, Status status) {
    if (status == DTRAIN_OK) return Result::success;
    char line[error_text_size + 64];
    std::snprintf(line, sizeof line, "%s: %s", call, error_text());
    write_line(nullptr, DTRAIN_LOG_ERROR, line);
    for (const Translation &one : translations)
        if (one.from == status) return one.to;
    return Result::system_error;
}

// No exception may reach NCCL.
template <class Function> Result guarded(const char *call, Function &&function) {
    try {
        return report(call, function());
    } catch (const std::bad_alloc &) {
        return report(call, fail(DTRAIN_ERR_NO_MEMORY, "no memory"));
    } catch (const std::exception &error) {
        return report(call, fail(DTRAIN_ERR_INTERNAL, "%s", error.what()));
    }
}

Status missing(const char *what) { return fail(DTRAIN_ERR_INVALID, "%s is NULL", what); }

// For calls that make something of the devices.
template <class Function> Status with_net(Function &&function) {
    Plugin &own = plugin();
    Net *net;
    {
        const std::lock_guard lock(own.mutex);
        if (own.net == nullptr) return fail(DTRAIN_ERR_INVALID, "init() has not been called");
        net = own.net.get();
        net->users++; // so that finalize() of another thread leaves the devices open
    }
    const Status status = function(*net);
    net->users--;
    return status;
}
// NCCL gets an object, or gives it back.
template <class Object> void hand_over(std::unique_ptr<Object> &object, void **out) {
    if (object == nullptr) return;
    plugin().net->users++;
    *out = object.release();
}
template <class Object> void take_back(void *object) {
    delete static_cast<Object *>(object);
    plugin().net->users--;
}

// "isend: sending to host:pid by tcp:eth0: ..."
Status about(const Comm &comm, Status status) {
    return status == DTRAIN_OK ? status : fail_within(status, "%s", comm.text().c_str());
}

Status buffer_of(void *data, size_t bytes, int tag, void *registration, Buffer &out) {
    if (bytes > INT32_MAX)
        return fail(DTRAIN_ERR_INVALID, "a message of %zu bytes is too long", bytes);
    if (data == nullptr && bytes > 0) return missing("the buffer");
    out = {data, bytes, tag, nullptr};
    if (registration != nullptr)
        out.registration = static_cast<Registration *>(registration)->region;
    return DTRAIN_OK;
}

} // namespace

Result init(Logger logger) {
    if (logger != nullptr) logger_of_nccl = logger;
    return guarded("init", [] {
        Plugin &own = plugin();
        const std::lock_guard lock(own.mutex);
        if (own.net == nullptr)
            if (Status s = Net::open(write_line, own.net); s != DTRAIN_OK) return s;
        own.contexts++;
        return Status(DTRAIN_OK);
    });
}

Result finalize(void *) {
    return guarded("finalize", [] {
        Plugin &own = plugin();
        const std::lock_guard lock(own.mutex);
        if (own.contexts > 0) own.contexts--;
        if (own.contexts > 0 || own.net == nullptr) return Status(DTRAIN_OK);
        if (own.net->users == 0)
            own.net.reset();
        else
            own.net->log().write(DTRAIN_LOG_INFO,
                                 "%d connections, listeners and registrations were not closed; the "
                                 "devices stay open",
                                 own.net->users.load());
        return Status(DTRAIN_OK);
    });
}

Result devices(int *count) {
    return guarded("devices", [&] {
        if (count == nullptr) return missing("the count");
        return with_net([&](Net &net) {
            *count = net.devices();
            return Status(DTRAIN_OK);
        });
    });
}

Result describe(int device, Card &card) {
    return guarded("getProperties",
                   [&] { return with_net([&](Net &net) { return net.describe(device, card); }); });
}

Result listen(int device, void *handle, void **listener) {
    return guarded("listen", [&] {
        if (handle == nullptr || listener == nullptr) return missing("the handle or the listener");
        return with_net([&](Net &net) {
            std::unique_ptr<Listener> made;
            const Status status = net.listen(device, handle, made);
            hand_over(made, listener);
            return status;
        });
    });
}

Result connect(int device, void *handle, void **comm) {
    return guarded("connect", [&] {
        if (handle == nullptr || comm == nullptr) return missing("the handle or the connection");
        *comm = nullptr;
        return with_net([&](Net &net) {
            std::unique_ptr<Comm> made;
            const Status status = net.connect(device, handle, made);
            hand_over(made, comm);
            return status;
        });
    });
}

Result accept(void *listener, void **comm) {
    return guarded("accept", [&] {
        if (listener == nullptr || comm == nullptr)
            return missing("the listener or the connection");
        *comm = nullptr;
        std::unique_ptr<Comm> made;
        const Status status = static_cast<Listener *>(listener)->step(made);
        hand_over(made, comm);
        return status;
    });
}

Result register_memory(void *comm, void *data, size_t bytes, int type, void **registration) {
    return guarded("regMr", [&] {
        if (comm == nullptr || registration == nullptr) return missing("the connection");
        if (type != memory_host)
            return fail(DTRAIN_ERR_INVALID, "memory of type %d: only host memory is supported",
                        type);
        std::unique_ptr<Registration> made;
        const Status status =
            Net::register_memory(static_cast<Comm *>(comm)->rail(), data, bytes, made);
        hand_over(made, registration);
        return status;
    });
}

Result register_dmabuf(void *, void *, size_t, int, uint64_t, int, void **) {
    return guarded("regMrDmaBuf", [] {
        return fail(DTRAIN_ERR_INVALID, "DMA buffers are not supported, as getProperties() says");
    });
}

Result deregister(void *, void *registration) {
    return guarded("deregMr", [&] {
        if (registration == nullptr) return Status(DTRAIN_OK);
        Net::deregister(*static_cast<Registration *>(registration));
        take_back<Registration>(registration);
        return Status(DTRAIN_OK);
    });
}

Result send(void *comm, void *data, size_t bytes, int tag, void *registration, void **request) {
    return guarded("isend", [&] {
        if (comm == nullptr || request == nullptr) return missing("the connection or the request");
        Comm &sender = *static_cast<Comm *>(comm);
        *request = nullptr;
        if (sender.direction() != Comm::Direction::send)
            return fail(DTRAIN_ERR_INVALID, "this connection is for receiving");
        Buffer buffer;
        if (Status s = buffer_of(data, bytes, tag, registration, buffer); s != DTRAIN_OK) return s;
        Request *made = nullptr;
        const Status status = sender.post({&buffer, 1}, made);
        *request = made;
        return about(sender, status);
    });
}

Result receive(void *comm, int count, void **data, const size_t *bytes, const int *tags,
               void **registrations, void **request) {
    return guarded("irecv", [&] {
        if (comm == nullptr || request == nullptr) return missing("the connection or the request");
        if (data == nullptr || bytes == nullptr || tags == nullptr)
            return missing("the buffers, their sizes or tags");
        Comm &receiver = *static_cast<Comm *>(comm);
        *request = nullptr;
        if (receiver.direction() != Comm::Direction::receive)
            return fail(DTRAIN_ERR_INVALID, "this connection is for sending");
        if (count < 1 || count > most_receives)
            return fail(DTRAIN_ERR_INVALID, "%d receives at once; 1 to %d are possible", count,
                        most_receives);
        Buffer buffers[most_receives];
        for (int i = 0; i < count; i++)
            if (Status s =
                    buffer_of(data[i], bytes[i], tags[i],
                              registrations != nullptr ? registrations[i] : nullptr, buffers[i]);
                s != DTRAIN_OK)
                return s;
        Request *made = nullptr;
        const Status status = receiver.post({buffers, size_t(count)}, made);
        *request = made;
        return about(receiver, status);
    });
}

// What has arrived in host memory is there.
Result flush(void *, int, void **, int *, void **, void **request) {
    if (request != nullptr) *request = nullptr;
    return Result::success;
}

Result test(void *request, int *done, int *bytes) {
    return guarded("test", [&] {
        if (request == nullptr || done == nullptr) return missing("the request");
        Request &tested = *static_cast<Request *>(request);
        if (tested.comm == nullptr) return fail(DTRAIN_ERR_INVALID, "the request is over");
        Comm &comm = *tested.comm;
        bool over = false;
        const Status status = comm.test(tested, over, bytes);
        *done = over ? 1 : 0;
        return about(comm, status);
    });
}

Result close_comm(void *comm) {
    return guarded("close", [&] {
        if (comm != nullptr) take_back<Comm>(comm);
        return Status(DTRAIN_OK);
    });
}

Result close_listen(void *listener) {
    return guarded("closeListen", [&] {
        if (listener != nullptr) take_back<Listener>(listener);
        return Status(DTRAIN_OK);
    });
}

} // namespace dtrain::nccl
