// The listening socket of a device.
// SPDX-License-Identifier: Apache-2.0
#include "tcp/acceptor.h"
#include "tcp/socket.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>

namespace dtrain::tcp {

Fd Acceptor::open_reserve() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

dtrain_status_t Acceptor::listen(SocketAddress *socket) {
    Fd fresh;
    const dtrain_status_t status = listen_on(host_, socket, &fresh);
    if (status != DTRAIN_OK) return status;
    if (listener_) poller_.remove(listener_.get(), this);
    listener_ = std::move(fresh);
    if (!poller_.add(listener_.get(), this, EPOLLIN))
        return host_.fail(DTRAIN_ERR_IO, "tcp: cannot watch the listening socket: %s",
                          strerror(errno));
    return DTRAIN_OK;
}

Fd Acceptor::accept(bool *more) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    *more = fd || on_error(errno);
    return fd;
}

// True: there may be more to accept. Without a free descriptor, the reserve descriptor is used to
// accept the incoming connection and close it; if even that fails, the listener is not watched for
// a while.
bool Acceptor::on_error(int error) {
    if (error == ECONNABORTED || error == EINTR) return true;
    if (error != EMFILE && error != ENFILE) return false;
    reserve_.reset();
    Fd refused(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const bool nobody = !refused && errno == EAGAIN; // the first error hid it
    if (!nobody) refusals_.refused("no file descriptors left (raise the limit on open files)");
    const bool more = bool(refused);
    refused.reset();
    reserve_ = open_reserve();
    if (reserve_ && (more || nobody)) return more;
    paused_ = poller_.change(listener_.get(), this, 0);
    return false;
}

void Acceptor::resume() {
    if (paused_) paused_ = !poller_.change(listener_.get(), this, EPOLLIN);
}

} // namespace dtrain::tcp
