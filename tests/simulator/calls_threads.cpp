// Threads, locks and conditions: whoever would wait gives the baton away.
// SPDX-License-Identifier: Apache-2.0
#include "real.h"
#include "scheduler.h"

#include <cerrno>
#include <cstdarg>
#include <ctime>
#include <linux/futex.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace dtrain::simulator;

namespace {

struct Start {
    void *(*run)(void *);
    void *argument;
    int thread;
};

std::map<pthread_t, int> &numbers() { // of this process's threads that are not joined yet
    static std::map<pthread_t, int> all;
    return all;
}

void *begin(void *argument) {
    const std::unique_ptr<Start> start(static_cast<Start *>(argument));
    me = start->thread;
    take_baton();
    void *result = start->run(start->argument);
    end_thread();
    return result;
}

int wait_on(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline) {
    const auto real_unlock = REAL(pthread_mutex_unlock);
    step("pthread_cond_wait");
    real_unlock(mutex); // nobody runs between this and the wait
    wake(mutex, true);
    // It may also wake up for no reason.
    const bool woken = random_below(50) == 0 || wait_at(condition, deadline);
    pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
}

// Calls `attempt` until it does not say BUSY; whoever gives the lock back wakes all who wait there.
template <class Attempt> int until_free(const void *lock, Attempt &&attempt) {
    for (;;) {
        const int result = attempt();
        if (result != EBUSY) return result;
        wait_at(lock);
    }
}

} // namespace

INSTEAD int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                           void *argument) noexcept {
    const auto real = REAL(pthread_create);
    if (!simulated()) return real(out, attributes, run, argument);
    step("pthread_create");
    auto start = std::make_unique<Start>(Start{run, argument, nobody});
    // From here on it may be given the baton.
    const int thread = add_thread(own().process, "thread");
    if (thread == nobody) fail_life("the simulator has too few threads");
    start->thread = thread;
    const int result = real(out, attributes, &begin, start.get());
    if (result != 0) {
        world->threads[thread].state = Thread::State::unused;
        return result;
    }
    start.release();
    numbers()[*out] = thread;
    return 0;
}

INSTEAD int pthread_join(pthread_t thread, void **result) {
    const auto real = REAL(pthread_join);
    if (simulated()) {
        step("pthread_join");
        const auto found = numbers().find(thread);
        if (found != numbers().end()) {
            Thread &other = world->threads[found->second];
            while (other.state != Thread::State::ended) wait_at(&other);
            other.state = Thread::State::unused;
            numbers().erase(thread);
        }
    }
    return real(thread, result);
}

INSTEAD int pthread_mutex_trylock(pthread_mutex_t *mutex) noexcept {
    const auto real = REAL(pthread_mutex_trylock);
    if (simulated()) step("pthread_mutex_trylock");
    return real(mutex);
}

INSTEAD int pthread_mutex_lock(pthread_mutex_t *mutex) noexcept {
    const auto real = REAL(pthread_mutex_lock);
    const auto attempt = REAL(pthread_mutex_trylock);
    if (!simulated()) return real(mutex);
    step("pthread_mutex_lock");
    return until_free(mutex, [&] { return attempt(mutex); });
}

INSTEAD int pthread_mutex_unlock(pthread_mutex_t *mutex) noexcept {
    const auto real = REAL(pthread_mutex_unlock);
    const int result = real(mutex);
    if (simulated()) {
        wake(mutex, true);
        step("pthread_mutex_unlock");
    }
    return result;
}

INSTEAD int pthread_rwlock_rdlock(pthread_rwlock_t *lock) noexcept {
    const auto real = REAL(pthread_rwlock_rdlock);
    const auto attempt = REAL(pthread_rwlock_tryrdlock);
    if (!simulated()) return real(lock);
    step("pthread_rwlock_rdlock");
    return until_free(lock, [&] { return attempt(lock); });
}

INSTEAD int pthread_rwlock_wrlock(pthread_rwlock_t *lock) noexcept {
    const auto real = REAL(pthread_rwlock_wrlock);
    const auto attempt = REAL(pthread_rwlock_trywrlock);
    if (!simulated()) return real(lock);
    step("pthread_rwlock_wrlock");
    return until_free(lock, [&] { return attempt(lock); });
}

INSTEAD int pthread_rwlock_unlock(pthread_rwlock_t *lock) noexcept {
    const auto real = REAL(pthread_rwlock_unlock);
    const int result = real(lock);
    if (simulated()) wake(lock, true);
    return result;
}

INSTEAD int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    const auto real = REAL(pthread_cond_wait, "GLIBC_2.3.2");
    if (!simulated()) return real(condition, mutex);
    wait_on(condition, mutex, never);
    return 0;
}

INSTEAD int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                   clockid_t clock, const timespec *until) {
    const auto real = REAL(pthread_cond_clockwait);
    if (!simulated()) return real(condition, mutex, clock, until);
    return wait_on(condition, mutex, in_ns(*until));
}

INSTEAD int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                   const timespec *until) {
    const auto real = REAL(pthread_cond_timedwait, "GLIBC_2.3.2");
    if (!simulated()) return real(condition, mutex, until);
    return wait_on(condition, mutex, in_ns(*until));
}

INSTEAD int pthread_cond_signal(pthread_cond_t *condition) noexcept {
    const auto real = REAL(pthread_cond_signal, "GLIBC_2.3.2");
    if (!simulated()) return real(condition);
    wake(condition, false);
    step("pthread_cond_signal");
    return 0;
}

INSTEAD int pthread_cond_broadcast(pthread_cond_t *condition) noexcept {
    const auto real = REAL(pthread_cond_broadcast, "GLIBC_2.3.2");
    if (!simulated()) return real(condition);
    wake(condition, true);
    step("pthread_cond_broadcast");
    return 0;
}

// Of system calls without a function, futexes inside a process.
INSTEAD long syscall(long number, ...) noexcept {
    const auto real = REAL(syscall);
    va_list list;
    va_start(list, number);
    long arguments[6];
    for (long &argument : arguments) argument = va_arg(list, long);
    va_end(list);
    if (!simulated() || number != SYS_futex)
        return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                    arguments[5]);
    auto *word = reinterpret_cast<uint32_t *>(arguments[0]);
    const long operation = arguments[1] & FUTEX_CMD_MASK;
    const auto value = uint32_t(arguments[2]);
    const auto *time = reinterpret_cast<const timespec *>(arguments[3]);
    step("futex");
    if (operation == FUTEX_WAKE) {
        wake(word, value > 1);
        return 0;
    }
    if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET)
        fail_life("the simulator does not know futex operation %ld", operation);
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) return errno = EAGAIN, -1;
    int64_t deadline = never;
    if (time != nullptr) deadline = in_ns(*time) + (operation == FUTEX_WAIT ? world->clock : 0);
    if (wait_at(word, deadline)) return 0;
    errno = ETIMEDOUT;
    return -1;
}
