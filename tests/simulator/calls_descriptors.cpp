// Descriptors: events, timers, epoll, and waiting for them. Each has a descriptor of the kernel's
// in its place, so that numbers are never used twice.
// SPDX-License-Identifier: Apache-2.0
#include "descriptors.h"
#include "files.h"
#include "network.h"
#include "real.h"
#include "scheduler.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace dtrain::simulator {

int object_of(int fd) {
    if (!simulated() || fd < 0 || fd >= most_descriptors) return 0;
    return own_process().objects[fd];
}

int enter_descriptor(int object) {
    const auto really_open = REAL(open);
    if (object < 0) return result_of(object);
    const int fd = really_open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0 || fd >= most_descriptors) fail_life("the simulator has too few descriptors");
    own_process().objects[fd] = int16_t(object);
    return fd;
}

int result_of(int64_t result) {
    if (result >= 0) return int(result);
    errno = int(-result);
    return -1;
}

void wait_for_events(int object, short events, int64_t deadline) {
    Wait wait;
    wait.kind = Wait::Kind::descriptors;
    wait.count = 1;
    wait.of[0] = {object, events};
    wait_for(wait, deadline);
}

namespace {

int64_t read_event(Object &object, uint64_t &value) {
    if (object.count == 0) return -EAGAIN;
    value = std::exchange(object.count, 0);
    return sizeof value;
}

int64_t read_timer(Object &object, uint64_t &value) {
    auto &timer = object.timer;
    if (timer.at > world->clock) return -EAGAIN;
    value = 1;
    if (timer.every > 0) {
        value += uint64_t((world->clock - timer.at) / timer.every);
        timer.at += int64_t(value) * timer.every;
    } else {
        timer.at = never;
    }
    return sizeof value;
}

int64_t read_object(Object &object, void *into, size_t length) {
    if (object.kind == Object::Kind::socket) return receive_bytes(object.socket, into, length);
    if (length < sizeof(uint64_t)) return -EINVAL;
    uint64_t value = 0;
    const int64_t result = object.kind == Object::Kind::event   ? read_event(object, value)
                           : object.kind == Object::Kind::timer ? read_timer(object, value)
                                                                : -EINVAL;
    if (result > 0) memcpy(into, &value, sizeof value);
    return result;
}

int64_t write_object(Object &object, const void *from, size_t length) {
    if (object.kind == Object::Kind::socket) return send_bytes(object.socket, from, length);
    uint64_t value;
    if (object.kind != Object::Kind::event || length < sizeof value) return -EINVAL;
    memcpy(&value, from, sizeof value);
    object.count += value;
    return sizeof value;
}

// Waits until one of them is ready; how many are.
int poll_until(pollfd *fds, nfds_t count, int64_t deadline) {
    for (;;) {
        Wait wait;
        wait.kind = Wait::Kind::descriptors;
        int ready = 0;
        for (nfds_t i = 0; i < count; i++) {
            fds[i].revents = 0;
            const int object = fds[i].fd < 0 ? 0 : object_of(fds[i].fd);
            if (object == 0) continue; // a file of the kernel's is never ready
            fds[i].revents = short(ready_events(object) & (fds[i].events | POLLERR | POLLHUP));
            if (fds[i].revents != 0) ready++;
            if (wait.count == most_waits)
                fail_life("the simulator cannot poll so many descriptors");
            wait.of[wait.count++] = {object, fds[i].events};
        }
        if (ready == 0 && deadline <= world->clock) find_nothing();
        if (ready > 0 || deadline <= world->clock) return ready;
        wait_for(wait, deadline);
    }
}

} // namespace
} // namespace dtrain::simulator

using namespace dtrain::simulator;

INSTEAD int close(int fd) {
    const auto real = REAL(close);
    note_closed_file(fd);
    if (const int object = object_of(fd)) {
        step("close");
        own_process().objects[fd] = 0;
        release_object(object);
    }
    return real(fd);
}

INSTEAD ssize_t read(int fd, void *into, size_t length) {
    const auto real = REAL(read);
    const int object = object_of(fd);
    if (object == 0) return real(fd, into, length);
    return transfer("read", object, POLLIN, false,
                    [&] { return read_object(object_at(object), into, length); });
}

INSTEAD ssize_t write(int fd, const void *from, size_t length) {
    const auto real = REAL(write);
    const int object = object_of(fd);
    if (is_on_disk(fd)) {
        wait_for_disk("write");
        if (disk_refuses()) return -1;
    }
    if (object == 0) return real(fd, from, length);
    return transfer("write", object, POLLOUT, false,
                    [&] { return write_object(object_at(object), from, length); });
}

INSTEAD int eventfd(unsigned value, int flags) noexcept {
    const auto real = REAL(eventfd);
    if (!simulated()) return real(value, flags);
    step("eventfd");
    const int object = make_object(Object::Kind::event, flags & EFD_NONBLOCK);
    if (object > 0) object_at(object).count = value;
    return enter_descriptor(object);
}

INSTEAD int eventfd_write(int fd, eventfd_t value) {
    return write(fd, &value, sizeof value) == sizeof value ? 0 : -1;
}

INSTEAD int eventfd_read(int fd, eventfd_t *value) {
    return read(fd, value, sizeof *value) == sizeof *value ? 0 : -1;
}

INSTEAD int timerfd_create(int clock, int flags) noexcept {
    const auto real = REAL(timerfd_create);
    if (!simulated()) return real(clock, flags);
    step("timerfd_create");
    return enter_descriptor(make_object(Object::Kind::timer, flags & TFD_NONBLOCK));
}

INSTEAD int timerfd_settime(int fd, int flags, const itimerspec *time, itimerspec *old) noexcept {
    const auto real = REAL(timerfd_settime);
    const int object = object_of(fd);
    if (object == 0) return real(fd, flags, time, old);
    step("timerfd_settime");
    auto &timer = object_at(object).timer;
    timer.every = in_ns(time->it_interval);
    timer.at = in_ns(time->it_value) + (flags & TFD_TIMER_ABSTIME ? 0 : world->clock);
    if (in_ns(time->it_value) == 0) timer.at = never;
    return 0;
}

INSTEAD int poll(pollfd *fds, nfds_t count, int timeout_ms) {
    const auto real = REAL(poll);
    if (!simulated()) return real(fds, count, timeout_ms);
    step("poll");
    return poll_until(fds, count, timeout_ms < 0 ? never : world->clock + timeout_ms * ms);
}

INSTEAD int ppoll(pollfd *fds, nfds_t count, const timespec *timeout, const sigset_t *mask) {
    const auto real = REAL(ppoll);
    if (!simulated()) return real(fds, count, timeout, mask);
    step("ppoll");
    const int64_t deadline = timeout == nullptr ? never : world->clock + in_ns(*timeout);
    return poll_until(fds, count, deadline);
}

INSTEAD int epoll_create1(int flags) noexcept {
    const auto real = REAL(epoll_create1);
    if (!simulated()) return real(flags);
    step("epoll_create1");
    return enter_descriptor(make_object(Object::Kind::epoll, false));
}

INSTEAD int epoll_ctl(int epoll, int operation, int fd, epoll_event *event) noexcept {
    const auto real = REAL(epoll_ctl);
    const int object = object_of(epoll);
    if (object == 0) return real(epoll, operation, fd, event);
    step("epoll_ctl");
    Epoll &set = object_at(object).epoll;
    auto *end = set.items + set.count;
    auto *found = std::find_if(set.items, end, [&](const Epoll::Item &i) { return i.fd == fd; });
    if (operation == EPOLL_CTL_ADD) {
        if (found != end) return result_of(-EEXIST);
        if (object_of(fd) == 0) return result_of(-EPERM);
        if (set.count == Epoll::most) fail_life("the simulator's epoll is too small");
        *end = {fd, object_of(fd), event->events, event->data.u64};
        set.count++;
        return 0;
    }
    if (found == end) return result_of(-ENOENT);
    if (operation == EPOLL_CTL_MOD) {
        found->events = event->events;
        found->data = event->data.u64;
    } else {
        *found = set.items[--set.count];
    }
    return 0;
}

INSTEAD int epoll_wait(int epoll, epoll_event *events, int most, int timeout_ms) {
    const auto real = REAL(epoll_wait);
    const int object = object_of(epoll);
    if (object == 0) return real(epoll, events, most, timeout_ms);
    step("epoll_wait");
    const int64_t deadline = timeout_ms < 0 ? never : world->clock + timeout_ms * ms;
    for (;;) {
        const Epoll &set = object_at(object).epoll;
        int found = 0;
        const int first = set.count > 0 ? int(random_below(uint64_t(set.count))) : 0;
        for (int i = 0; i < set.count && found < most; i++) {
            const Epoll::Item &item = set.items[(first + i) % set.count];
            const auto now =
                uint32_t(ready_events(item.object)) & (item.events | EPOLLERR | EPOLLHUP);
            if (now == 0) continue;
            events[found].events = now;
            events[found++].data.u64 = item.data;
        }
        if (found == 0 && deadline <= world->clock) find_nothing();
        if (found > 0 || deadline <= world->clock) return found;
        wait_for_events(object, POLLIN, deadline);
    }
}

INSTEAD int fcntl(int fd, int command, ...) {
    const auto real = REAL(fcntl);
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    const int object = object_of(fd);
    if (object != 0 && command == F_GETFL)
        return O_RDWR | (object_at(object).nonblocking ? O_NONBLOCK : 0);
    if (object != 0 && command == F_SETFL) {
        object_at(object).nonblocking = (reinterpret_cast<intptr_t>(argument) & O_NONBLOCK) != 0;
        return 0;
    }
    const int result = real(fd, command, argument);
    if (object != 0 && result >= 0 && (command == F_DUPFD_CLOEXEC || command == F_DUPFD)) {
        if (result >= most_descriptors) fail_life("the simulator has too few descriptors");
        object_at(object).references++;
        own_process().objects[result] = int16_t(object);
    }
    return result;
}

INSTEAD int ioctl(int fd, unsigned long request, ...) noexcept {
    const auto real = REAL(ioctl);
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    const int object = object_of(fd);
    if (object == 0) return real(fd, request, argument);
    step("ioctl");
    if (request != SIOCOUTQ || object_at(object).kind != Object::Kind::socket)
        return result_of(-EINVAL);
    *static_cast<int *>(argument) = int(unsent_bytes(object_at(object).socket));
    return 0;
}
