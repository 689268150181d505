// A thin layer over epoll.
// SPDX-License-Identifier: Apache-2.0
#include "shm/poller.h"

#include <sys/epoll.h>

namespace dtrain::shm {

Status Poller::open(const Host &host) {
    fd_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    owner_ = getpid();
    return fd_ ? DTRAIN_OK : fail_errno(host, errno, "epoll_create1");
}

Status Poller::add(const Host &host, const Fd &fd, Watcher *watcher) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = watcher;
    if (epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return DTRAIN_OK;
    return fail_errno(host, errno, "epoll_ctl");
}

void Poller::remove(const Fd &fd) {
    if (getpid() == owner_) epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
}

void Poller::dispatch() {
    epoll_event events[32];
    int n = epoll_wait(fd_.get(), events, 32, 0);
    for (int i = 0; i < n; i++) static_cast<Watcher *>(events[i].data.ptr)->on_readable();
}

} // namespace dtrain::shm
