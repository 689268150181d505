// Tries shared memory out within this process.
// SPDX-License-Identifier: Apache-2.0
#include "shm/trial.h"
#include "shm/segment.h"
#include "shm/system_error.h"

namespace dtrain::shm {
namespace {

constexpr uint64_t bytes = 4096;
constexpr std::byte mark{0x5a};

Status pass(const Host &host, const Fd &from, const Fd &to, const Fd &memory, Fd &out) {
    char byte = 0;
    if (!send_message(from, &byte, sizeof byte, memory.get()))
        return fail_errno(host, errno, "passing a descriptor");
    const ssize_t n = receive_message(to, &byte, sizeof byte, out);
    if (n < 0) return fail_errno(host, int(-n), "receiving a descriptor");
    return out ? DTRAIN_OK
               : host.fail(DTRAIN_ERR_IO, "shm: a descriptor that was passed did not arrive");
}

} // namespace

Status try_out(const Host &host, const Name &own, const Fd &listener, const Doorbell &bell) {
    Fd from, to, memory, passed;
    Segment made, mapped;
    if (Status s = connect_to(host, own, from); s != DTRAIN_OK) return s;
    while (!to)
        if (!accept_from(listener, to)) return fail_errno(host, errno, "accepting a connection");
    Status status = Segment::create(host, bytes, "", made, memory);
    if (status == DTRAIN_OK) status = pass(host, from, to, memory, passed);
    if (status == DTRAIN_OK) status = Segment::attach(host, passed, bytes, true, mapped);
    if (status != DTRAIN_OK) return status;
    *made.data() = mark;
    if (*mapped.data() != mark)
        return host.fail(DTRAIN_ERR_IO, "shm: memory that was passed is not shared");
    bell.ring(own);
    return bell.drain() ? DTRAIN_OK : fail_errno(host, errno, "being woken by a local socket");
}

} // namespace dtrain::shm
