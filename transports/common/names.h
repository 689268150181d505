// Resolves the addresses of a name.
// SPDX-License-Identifier: Apache-2.0
//
// The resolver may take half a minute, and getaddrinfo() can neither be interrupted nor given a
// time limit. So a thread of the library calls it, and the waiting thread may give up.
// (getaddrinfo_a() would use a thread of libc. But a child forked at the wrong moment would find
// its lock taken forever, and nothing would keep descriptors 0 to 2 occupied, or free an answer
// that arrives after giving up.)
#pragma once
#include "common/signals.h"
#include "common/standard_descriptors.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <netdb.h>
#include <new>
#include <pthread.h>
#include <utility>

namespace dtrain::tp {

// The clock of the deadlines.
inline int64_t resolver_now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

using Resolver = int(const char *name, const char *service, const addrinfo *hints,
                     addrinfo **found);

// Owned by the thread that waits for it; once that has given up, by the resolver's thread.
class Lookup {
  public:
    Lookup(const char *name, const char *service, const addrinfo &hints, Resolver *resolver)
        : hints_(hints), has_service_(service != nullptr), resolver_(resolver) {
        snprintf(name_, sizeof name_, "%s", name);
        snprintf(service_, sizeof service_, "%s", has_service_ ? service : "");
    }
    ~Lookup() {
        if (found_) freeaddrinfo(found_);
    }
    Lookup(const Lookup &) = delete;
    Lookup &operator=(const Lookup &) = delete;

    bool start() {
        const SignalsHeld held;
        return !(errno = pthread_create(&thread_, nullptr, run, this));
    }
    // False: there is no answer, and *this now belongs to the resolver's thread.
    bool wait(int64_t deadline_ns) {
        std::unique_lock lock(mutex_);
        const std::chrono::steady_clock::time_point deadline{std::chrono::nanoseconds(deadline_ns)};
        if (has_ended_.wait_until(lock, deadline, [this] { return ended_; })) {
            lock.unlock();
            pthread_join(thread_, nullptr); // its last instructions are in this shared object
            return true;
        }
        stay_loaded();
        pthread_detach(thread_);
        given_up_ = true;
        return false;
    }
    int answer(addrinfo **found) {
        *found = std::exchange(found_, nullptr);
        errno = errno_;
        return error_;
    }

  private:
    static void *run(void *self) {
        pthread_setname_np(pthread_self(), "dtrain-resolve");
        auto *lookup = static_cast<Lookup *>(self);
        lookup->ask();
        if (lookup->end()) delete lookup;
        return nullptr;
    }
    void ask() {
        constexpr size_t plenty = 64 << 10;
        // Volatile: otherwise the compiler may drop the call.
        void *volatile memory = std::malloc(plenty);
        if (memory == nullptr) {
            error_ = EAI_MEMORY;
            return;
        }
        std::free(memory);
        const StandardDescriptors occupied;
        error_ = resolver_(name_, has_service_ ? service_ : nullptr, &hints_, &found_);
        errno_ = errno;
    }
    bool end() { // true: no thread waits any more
        const std::lock_guard lock(mutex_);
        ended_ = true;
        has_ended_.notify_one();
        return given_up_;
    }
    // Stays loaded for good: a thread cannot unload the code that it runs. (The library's shared
    // objects are never unloaded; those of programs that contain the archive may be.)
    static void stay_loaded() {
        Dl_info own;
        if (dladdr(reinterpret_cast<void *>(&run), &own))
            dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }

    char name_[NI_MAXHOST], service_[NI_MAXSERV];
    const addrinfo hints_;
    const bool has_service_;
    Resolver *const resolver_;
    pthread_t thread_ = 0;
    std::mutex mutex_;
    std::condition_variable has_ended_;
    bool ended_ = false, given_up_ = false;
    int error_ = 0, errno_ = 0;
    addrinfo *found_ = nullptr;
};

// As getaddrinfo() for a numeric address, which is resolved at once.
inline int find_numeric(const char *name, const char *service, const addrinfo &hints,
                        addrinfo **found) {
    addrinfo numeric = hints;
    numeric.ai_flags |= AI_NUMERICHOST;
    return getaddrinfo(name, service, &numeric, found);
}

// As getaddrinfo(), which in glibc 2.36 crashes if memory is lacking for its copy of nsswitch.conf.
// Numeric addresses do not need that, and for names this function checks first that memory is
// available. EAI_INPROGRESS: there is no answer by deadline_ns (CLOCK_MONOTONIC). May return
// EAI_SYSTEM with errno.
inline int find_addresses(const char *name, const char *service, const addrinfo &hints,
                          int64_t deadline_ns, addrinfo **found, Resolver *resolver = getaddrinfo) {
    if (const int error = find_numeric(name, service, hints, found); error != EAI_NONAME)
        return error;
    if (strlen(name) >= NI_MAXHOST) return EAI_NONAME;
    auto *lookup = new (std::nothrow) Lookup(name, service, hints, resolver);
    if (!lookup) return EAI_MEMORY;
    int error = EAI_SYSTEM;
    if (lookup->start()) {
        if (!lookup->wait(deadline_ns)) return EAI_INPROGRESS;
        error = lookup->answer(found);
    }
    const int number = errno;
    delete lookup;
    errno = number;
    return error;
}

} // namespace dtrain::tp
