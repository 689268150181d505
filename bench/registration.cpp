// What it costs that memory of messages has to be registered: each time, for the first time with
// the cache of the transport ofi (option ofi.cache), and again.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: bench_registration [provider [domain]]. Libfabric's "net" registers without asking any
// card; "lock" is what a card's driver does at least: it keeps the pages in their place.
#include "fabric.h"
#include "ofi/registration_cache.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>

namespace {

using bench::must;
using dtrain::ofi::Fabric;
using dtrain::ofi::RegistrationCache;
using dtrain::tp::Host;
using dtrain::tp::Secrets;

constexpr int samples = 101;

double now_us() {
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double median(std::vector<double> &values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Ranges of memory next to each other that are in use, as arrays of a program are.
class Ranges {
  public:
    Ranges(size_t count, size_t bytes) : bytes_(bytes), whole_(count * bytes) {
        at_ = static_cast<char *>(mmap(nullptr, whole_, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
        must(at_ != MAP_FAILED, "this much memory");
    }
    ~Ranges() { munmap(at_, whole_); }
    Ranges(const Ranges &) = delete;
    char *at(size_t i) const { return at_ + i * bytes_; }

  private:
    const size_t bytes_, whole_;
    char *at_;
};

class Bench {
  public:
    Bench(const Host &host, const Fabric &fabric, size_t bytes)
        : host_(host), fabric_(fabric), bytes_(bytes) {}

    double lock() const {
        return each(samples, [&](char *range) {
            must(!mlock(range, bytes_) && !munlock(range, bytes_), "to lock memory");
        });
    }
    // Without a cache: registered and deregistered.
    double every_time() {
        RegistrationCache cache(host_, secrets_, fabric_);
        return each(samples, [&](char *range) { hold(cache, range); });
    }
    struct Kept {
        double first, again; // each range's first use, and later ones in no order
    };
    Kept with_cache(size_t ranges) {
        RegistrationCache cache(host_, secrets_, fabric_);
        cache.open(UINT64_MAX);
        const Ranges memory(ranges, bytes_);
        std::vector<double> first, again;
        for (size_t i = 0; i < ranges; i++) first.push_back(time(cache, memory.at(i)));
        for (size_t i = 0; i < samples; i++)
            again.push_back(time(cache, memory.at(i * 7919 % ranges)));
        dtrain::rdm::RegistrationCounts counts;
        cache.count(&counts);
        must(counts.hits == samples && counts.misses == ranges, "to keep registrations");
        return {median(first), median(again)};
    }

  private:
    void hold(RegistrationCache &cache, char *range) const {
        int error = 0;
        must(cache.hold(range, bytes_, &error) != nullptr, "to register memory");
    }
    double time(RegistrationCache &cache, char *range) const {
        const double begin = now_us();
        hold(cache, range);
        return now_us() - begin;
    }
    template <class F> double each(size_t ranges, F &&f) const {
        const Ranges memory(ranges, bytes_);
        std::vector<double> times;
        for (size_t i = 0; i < ranges; i++) {
            const double begin = now_us();
            f(memory.at(i));
            times.push_back(now_us() - begin);
        }
        return median(times);
    }

    const Host &host_;
    Secrets secrets_{host_};
    const Fabric &fabric_;
    const size_t bytes_;
};

} // namespace

int main(int argc, char **argv) {
    const dtrain_tp_host_t table = bench::services();
    const Host host(&table);
    Fabric fabric;
    const char *provider = argc > 1 ? argv[1] : "net";
    must(fabric.open(host, provider, argc > 2 ? argv[2] : "") == DTRAIN_OK, provider);
    std::printf("us, over %s\n%8s%9s%11s%11s; again, of%8s%9s%9s\n", provider, "bytes", "lock",
                "each time", "first use", "1 kept", "1000", "10000");
    for (size_t bytes : {4 << 10, 64 << 10, 1 << 20}) {
        Bench cost(host, fabric, bytes);
        const Bench::Kept thousand = cost.with_cache(1000);
        std::printf("%8zu%9.2f%11.2f%11.2f%11s%8.2f%9.2f", bytes, cost.lock(), cost.every_time(),
                    thousand.first, "", cost.with_cache(1).again, thousand.again);
        if (bytes < 1 << 20) // or it would take too much memory
            std::printf("%9.2f", cost.with_cache(10000).again);
        std::printf("\n");
    }
    return EXIT_SUCCESS;
}
