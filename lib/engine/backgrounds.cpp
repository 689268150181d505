// Serves backgrounds when their descriptors or deadlines ask for it.
// SPDX-License-Identifier: Apache-2.0
#include "engine/backgrounds.h"

#include "base/sleep.h"
#include "base/thread.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <sys/eventfd.h>

namespace dtrain::engine {
namespace {

constexpr int64_t longest_sleep = 1 * second;

} // namespace

Status Backgrounds::start(const char *name) {
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_) return fail_errno(errno, "thread %s: eventfd", name);
    return start_thread(thread_, name, [this] { run(); });
}

Backgrounds::~Backgrounds() {
    stop_ = true;
    if (thread_.joinable()) {
        eventfd_write(wake_.get(), 1);
        thread_.join();
    }
}

void Backgrounds::add(Background *background) {
    {
        std::lock_guard lock(mutex_);
        backgrounds_.push_back(background);
    }
    if (wake_) eventfd_write(wake_.get(), 1);
}

void Backgrounds::remove(Background *background) {
    std::lock_guard lock(mutex_);
    std::erase(backgrounds_, background);
}

int Backgrounds::serve() {
    std::lock_guard lock(mutex_);
    for (Background *background : backgrounds_) try {
            background->work();
        } catch (const std::bad_alloc &) {
            background->out_of_memory();
        }
    return int(backgrounds_.size());
}

void Backgrounds::run() {
    while (!stop_) {
        serve();
        rest();
    }
}

void Backgrounds::rest() {
    std::vector<pollfd> fds = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    const int64_t now = clock_.now_ns();
    int64_t until = now + longest_sleep;
    {
        std::lock_guard lock(mutex_);
        for (Background *background : backgrounds_) {
            fds.push_back({.fd = background->event_fd(), .events = POLLIN, .revents = 0});
            until = std::min(until, background->next_deadline_ns());
        }
    }
    if (until > now) sleep_on(fds, until - now);
    eventfd_t value;
    eventfd_read(wake_.get(), &value);
}

} // namespace dtrain::engine
