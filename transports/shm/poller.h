// The epoll set of a device: its sockets, level-triggered.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "shm/system_error.h"

namespace dtrain::shm {

using tp::Fd;

class Watcher {
  public:
    virtual void on_readable() = 0;

  protected:
    ~Watcher() = default;
};

class Poller {
  public:
    Status open(const Host &host);
    Status add(const Host &host, const Fd &fd, Watcher *watcher);
    // To be called before fd is closed: a forked child may hold it open, and the set would then
    // keep it.
    void remove(const Fd &fd);
    // Calls on_readable() of those that are readable. They may remove each other, but not delete
    // each other.
    void dispatch();
    int fd() const { return fd_.get(); }

  private:
    Fd fd_;
    pid_t owner_ = 0; // in a forked child the set still belongs to the parent
};

} // namespace dtrain::shm
