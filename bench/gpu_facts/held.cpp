// Streams that are held by words, and what goes on beside them.
// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <thread>

namespace facts {

// Do copies go on while many other streams wait, and does submitting?
void held_streams(const char *connections) {
    alone([&] {
        if (connections != nullptr) setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections, 1);
        open_gpu();
        Shared shared(2 << 20);
        if (shared.pin() != success) return;
        const Address device = allocate(1 << 20);
        const Stream mine = make_stream();
        uint32_t round = 0;
        const auto copies = [&](unsigned held) {
            std::vector<double> times;
            for (int i = 0; i < 20; i++) {
                const double begun = now_us();
                copy(device, shared.device() + (1 << 20), 64 << 10, mine);
                copy(shared.device() + (1 << 20), device, 64 << 10, mine);
                signal(mine, shared.at(1), ++round);
                const bool done = reaches(shared.word(1), round, 2e6);
                times.push_back(now_us() - begun);
                if (!done) {
                    std::printf("held streams: %u of them (CUDA_DEVICE_MAX_CONNECTIONS %s) hold up "
                                "copies of another one\n",
                                held, connections == nullptr ? "unset" : connections);
                    return false;
                }
            }
            if ((held & (held - 1)) == 0)
                std::printf("held streams: beside %u (CUDA_DEVICE_MAX_CONNECTIONS %s), 64 KiB to "
                            "the GPU and back take "
                            "%.0f us (at most %.0f)\n",
                            held, connections == nullptr ? "unset" : connections, median(times),
                            highest(times));
            return true;
        };
        std::vector<Stream> streams;
        shared.word(3).store(0);
        std::atomic<bool> ended = false;
        std::thread watch([&] { // submitting may never return
            uint32_t seen = 0;
            double since = now_us();
            while (!ended) {
                usleep(10'000);
                if (shared.word(3).load() != seen) {
                    seen = shared.word(3).load();
                    since = now_us();
                } else if (now_us() - since > 3e6) {
                    std::printf("held streams: the driver does not return from %s the stream %u "
                                "(CUDA_DEVICE_MAX_CONNECTIONS %s)\n",
                                seen % 4 == 0   ? "making"
                                : seen % 4 == 1 ? "holding"
                                : seen % 4 == 2 ? "filling in"
                                                : "copies beside",
                                seen / 4 + 1, connections == nullptr ? "unset" : connections);
                    shared.word(0).store(1);
                    return;
                }
            }
        });
        for (uint32_t count = 0; count <= 128 && shared.word(0).load() == 0; count++) {
            if (!copies(count)) break;
            shared.word(3).store(4 * count);
            streams.push_back(make_stream());
            shared.word(3).store(4 * count + 1);
            hold(streams.back(), shared.at(0), 1);
            shared.word(3).store(4 * count + 2);
            call<Address, unsigned char, size_t, Stream>("cuMemsetD8Async", device, 1, 64,
                                                         streams.back());
            shared.word(3).store(4 * count + 3);
        }
        ended = true;
        watch.join();
        shared.word(0).store(1);
        for (const Stream stream : streams) synchronize(stream);
    });
}

namespace {

// Which calls of the driver wait until no stream is held? And while one waits, can other threads
// submit work?
class BesideHeld {
  public:
    BesideHeld() {
        open_gpu();
        call<Context *>("cuCtxGetCurrent", &context_);
        if (shared_.pin() != success) std::_Exit(1);
        device_ = allocate(1 << 20);
        held_ = make_stream();
        mine_ = make_stream();
        copy(device_, shared_.device(), 4096, mine_);
        synchronize(mine_);
    }
    template <class F> void look(const char *what, F &&f) {
        hold(held_, shared_.at(0), ++number_);
        std::atomic<bool> done = false, submitted = false;
        Result result = success;
        double took = 0;
        std::thread caller([&] {
            call<Context>("cuCtxPushCurrent_v2", context_);
            const double begun = now_us();
            result = f();
            took = now_us() - begun;
            done = true;
        });
        const bool returned = soon(done);
        if (returned) {
            std::printf("beside a held stream: %s returns after %.0f us (result %d)\n", what, took,
                        result);
        } else {
            std::thread other([&] {
                call<Context>("cuCtxPushCurrent_v2", context_);
                copy(device_, shared_.device() + 4096, 4096, mine_);
                signal(mine_, shared_.at(1), number_);
                submitted = true;
            });
            const bool goes_on = soon(submitted);
            const bool runs = goes_on && reaches(shared_.word(1), number_, 1e6);
            std::printf("beside a held stream: %s WAITS; another thread meanwhile %s\n", what,
                        !goes_on ? "cannot even submit a copy"
                        : runs   ? "copies as usual"
                                 : "submits a copy, which is not done");
            shared_.word(0).store(number_);
            other.join();
        }
        shared_.word(0).store(number_);
        caller.join();
        synchronize(held_);
        synchronize(mine_);
    }
    void all();

  private:
    static bool soon(const std::atomic<bool> &flag) {
        const double end = now_us() + 1e6;
        while (!flag)
            if (now_us() > end) return false;
        return true;
    }
    Shared shared_{1 << 20};
    Context context_ = nullptr;
    Address device_ = 0;
    Stream held_ = nullptr, mine_ = nullptr;
    uint32_t number_ = 0;
};

constexpr char module_text[] = ".version 6.5\n.target sm_75\n.address_size 64\n"
                               ".visible .entry nothing()\n{\nret;\n}\n";

void BesideHeld::all() {
    Address small = 0, large = 0, pooled = 0, managed = 0;
    Stream made = nullptr;
    Module module = nullptr;
    Function function = nullptr;
    void *host = nullptr;
    Shared other(2 << 20);
    IpcHandle handle{};
    std::vector<char> plain(1 << 20);
    const Address idle = allocate(4096), idle_large = allocate(64 << 20);
    unsigned type = 0;
    PointerAttribute wanted[] = {memory_type};
    void *found[] = {&type};
    look("cuMemAlloc of 4 KiB",
         [&] { return ask<Address *, size_t>("cuMemAlloc_v2", &small, 4096); });
    look("cuMemAlloc of 256 MiB",
         [&] { return ask<Address *, size_t>("cuMemAlloc_v2", &large, 256 << 20); });
    look("cuMemAllocAsync of 1 MiB", [&] {
        return ask<Address *, size_t, Stream>("cuMemAllocAsync", &pooled, 1 << 20, mine_);
    });
    look("cuMemAllocManaged of 1 MiB", [&] {
        return ask<Address *, size_t, unsigned>("cuMemAllocManaged", &managed, 1 << 20, 1);
    });
    look("cuMemFree of 4 KiB", [&] { return ask<Address>("cuMemFree_v2", idle); });
    look("cuMemFree of 64 MiB", [&] { return ask<Address>("cuMemFree_v2", idle_large); });
    look("cuMemHostRegister of 2 MiB", [&] { return other.pin(); });
    look("cuMemHostUnregister of it",
         [&] { return ask<void *>("cuMemHostUnregister", other.bytes()); });
    look("cuMemHostAlloc of 1 MiB",
         [&] { return ask<void **, size_t, unsigned>("cuMemHostAlloc", &host, 1 << 20, 0); });
    look("cuMemFreeHost of it", [&] { return ask<void *>("cuMemFreeHost", host); });
    look("cuModuleLoadData",
         [&] { return ask<Module *, const void *>("cuModuleLoadData", &module, module_text); });
    look("cuModuleGetFunction", [&] {
        return ask<Function *, Module, const char *>("cuModuleGetFunction", &function, module,
                                                     "nothing");
    });
    look("cuFuncLoad", [&] { return ask<Function>("cuFuncLoad", function); });
    look("the first cuLaunchKernel of a kernel", [&] {
        return ask<Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Stream, void **, void **>("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0,
                                             mine_, nullptr, nullptr);
    });
    look("cuStreamCreate",
         [&] { return ask<Stream *, unsigned, int>("cuStreamCreateWithPriority", &made, 1, 0); });
    look("cuStreamDestroy of an idle stream",
         [&] { return ask<Stream>("cuStreamDestroy_v2", made); });
    look("cuIpcGetMemHandle",
         [&] { return ask<IpcHandle *, Address>("cuIpcGetMemHandle", &handle, device_); });
    look("cuMemcpyHtoD of 4 KiB of other host memory", [&] {
        return ask<Address, const void *, size_t>("cuMemcpyHtoD_v2", device_, plain.data(), 4096);
    });
    look("cuMemcpyHtoD of 1 MiB of it", [&] {
        return ask<Address, const void *, size_t>("cuMemcpyHtoD_v2", device_, plain.data(),
                                                  1 << 20);
    });
    look("cuMemcpyDtoH of 4 KiB", [&] {
        return ask<void *, Address, size_t>("cuMemcpyDtoH_v2", plain.data(), device_, 4096);
    });
    look("cuMemcpyAsync of 1 MiB to other host memory", [&] {
        return ask<Address, Address, size_t, Stream>(
            "cuMemcpyAsync", reinterpret_cast<Address>(plain.data()), device_, 1 << 20, mine_);
    });
    look("cuPointerGetAttributes", [&] {
        return ask<unsigned, PointerAttribute *, void **, Address>("cuPointerGetAttributes", 1,
                                                                   wanted, found, device_);
    });
    look("cuStreamQuery of it", [&] { return ask<Stream>("cuStreamQuery", held_); });
    look("cuStreamSynchronize of the legacy stream", [&] {
        return ask<Stream>("cuStreamSynchronize", reinterpret_cast<Stream>(stream_legacy));
    });
    look("cuModuleUnload", [&] { return ask<Module>("cuModuleUnload", module); });
    look("cuCtxSynchronize", [&] { return ask<>("cuCtxSynchronize"); });
}
} // namespace

void beside_held() {
    alone([] { BesideHeld().all(); });
}

} // namespace facts
