// What the design of GPU memory takes for granted about a driver and its GPU, each measured on this
// machine's: copies that return early, words in shared host memory, held streams, processes beside
// each other, memory of other processes, registration, and the rates of copies.
// SPDX-License-Identifier: Apache-2.0
//
// Usage: bench_gpu_facts. Each fact is one line. What the driver refuses is printed as its error.
#include "driver.h"

#include <memory>

namespace facts {
namespace {

// A stream waits for a word that another process stores, and answers with one.
void words() {
    Shared shared(1 << 20);
    constexpr uint32_t rounds = 2000;
    const pid_t other = in_process([&] {
        std::vector<double> times;
        if (!reaches(shared.word(2), 1)) return;
        for (uint32_t i = 1; i <= rounds; i++) {
            const double begun = now_us();
            shared.word(0).store(i, std::memory_order_release);
            if (!reaches(shared.word(1), i)) {
                std::printf("words: round %u was not answered\n", i);
                return;
            }
            times.push_back(now_us() - begun);
        }
        std::printf("words: a plain store of another process releases a stream, whose answer it "
                    "sees after %.1f us "
                    "(median of %u; at most %.1f)\n",
                    median(times), rounds, highest(times));
    });
    alone([&] {
        open_gpu();
        if (const Result r = shared.pin(); r != success) {
            std::printf("words: shared memory cannot be registered: error %d\n", r);
            return;
        }
        const Stream stream = make_stream();
        const double begun = now_us();
        for (uint32_t i = 1; i <= rounds; i++) {
            hold(stream, shared.at(0), i);
            signal(stream, shared.at(1), i);
            if (i == 500) shared.word(2).store(1); // enough is submitted
        }
        std::printf("words: submitting a wait and an answer takes %.1f us\n",
                    (now_us() - begun) / rounds);
        synchronize(stream);
        shared.unpin();
    });
    end_of(other);
}

// Does a copy that a call of the driver has made lie in the GPU's memory when the call returns?
void landed() {
    alone([] {
        open_gpu();
        constexpr size_t most = 1 << 20;
        Shared seen(most);
        if (seen.pin() != success) return;
        const Address device = allocate(most);
        const Stream stream = make_stream();
        std::vector<uint32_t> plain(most / 4);
        unsigned flags = 0;
        for (bool synchronous : {false, true}) {
            if (synchronous) {
                Result r = ask<unsigned *>("cuCtxGetFlags", &flags);
                if (r == success) r = ask<unsigned>("cuCtxSetFlags", flags | context_sync_memops);
                std::printf("landed: CU_CTX_SYNC_MEMOPS is set: result %d\n", r);
            }
            for (size_t bytes : {size_t{64}, size_t{4096}, size_t{65536}, most}) {
                unsigned stale = 0;
                constexpr unsigned rounds = 1000;
                double us = 0;
                for (uint32_t i = 1; i <= rounds; i++) {
                    for (size_t k = 0; k < bytes / 4; k++) plain[k] = i;
                    const double begun = now_us();
                    call<Address, const void *, size_t>("cuMemcpyHtoD_v2", device, plain.data(),
                                                        bytes);
                    us += now_us() - begun;
                    copy(seen.device(), device, bytes, stream);
                    synchronize(stream);
                    const auto *words = reinterpret_cast<const uint32_t *>(seen.bytes());
                    stale +=
                        std::any_of(words, words + bytes / 4, [&](uint32_t w) { return w != i; });
                }
                std::printf("landed: cuMemcpyHtoD of %zu bytes takes %.1f us, and %u of %u were "
                            "not there after it%s\n",
                            bytes, us / rounds, stale, rounds, synchronous ? ", synchronous" : "");
            }
        }
    });
}

// Two streams hand each other a word, of one process or of two.
void hand_over(bool processes) {
    Shared shared(1 << 20);
    constexpr uint32_t rounds = 200;
    const auto side = [&](uint32_t own) {
        open_gpu();
        if (shared.pin() != success) return;
        const auto submit = [&](Stream stream, uint32_t which) {
            for (uint32_t i = 1; i <= rounds; i++) {
                if (which == 0) signal(stream, shared.at(0), i);
                hold(stream, shared.at(1 - which), i);
                if (which == 1) signal(stream, shared.at(1), i);
            }
        };
        const Stream first = make_stream(), second = make_stream();
        synchronize(first);
        shared.word(2 + own).store(1);
        if (processes && !reaches(shared.word(3 - own), 1)) return;
        const double begun = now_us();
        if (!processes || own == 0) submit(first, 0);
        if (!processes) submit(second, 1);
        if (processes && own == 1) submit(first, 1);
        if (own == 0) {
            (void)reaches(shared.word(1), rounds);
            std::printf("hand-over: a word goes from a stream to another %s and back in %.1f us\n",
                        processes ? "process's" : "one of the process",
                        (now_us() - begun) / rounds);
        }
        synchronize(first);
        synchronize(second);
    };
    const pid_t other = processes ? in_process([&] { side(1); }) : -1;
    alone([&] { side(0); });
    if (other > 0) end_of(other);
}

// Kernels' work of two processes beside each other: the rate of copies on the GPU.
void beside(int count) {
    const Shared shared(1 << 20);
    std::vector<pid_t> children;
    for (int i = 0; i < count; i++)
        children.push_back(in_process([&, i] {
            constexpr size_t bytes = 256 << 20;
            open_gpu();
            const Address from = allocate(bytes), to = allocate(bytes);
            const Stream stream = make_stream();
            copy(to, from, bytes, stream);
            synchronize(stream);
            shared.word(size_t(i)).store(1);
            for (int k = 0; k < count; k++)
                if (!reaches(shared.word(size_t(k)), 1)) return;
            const double begun = now_us();
            for (int k = 0; k < 200; k++) copy(to, from, bytes, stream);
            synchronize(stream);
            std::printf("beside: process %d of %d copies at %.0f GB/s, read and written\n", i + 1,
                        count, 200 * 2e-3 * double(bytes) / (now_us() - begun));
            std::vector<double> times;
            for (int k = 0; k < 300; k++) {
                const double one = now_us();
                copy(to, from, 4096, stream);
                synchronize(stream);
                times.push_back(now_us() - one);
            }
            std::printf("beside: its copies of 4 KiB take %.1f us (at most %.0f)\n", median(times),
                        highest(times));
        }));
    for (const pid_t child : children) end_of(child);
}

// Another process's memory: mapped, read, and after its owner was killed.
void imports() {
    const Shared shared(1 << 20);
    constexpr size_t bytes = 64 << 20;
    const pid_t owner = in_process([&] {
        open_gpu();
        const Address memory = allocate(bytes);
        IpcHandle handle{};
        const Result r = ask<IpcHandle *, Address>("cuIpcGetMemHandle", &handle, memory);
        if (r != success) std::printf("imports: the driver exports nothing: error %d\n", r);
        std::memcpy(shared.bytes() + 4096, &handle, sizeof handle);
        shared.word(0).store(r == success ? 1 : 2);
        for (;;) pause();
    });
    alone([&] {
        if (!reaches(shared.word(0), 1) || shared.word(0).load() == 2) return;
        open_gpu();
        IpcHandle handle;
        std::memcpy(&handle, shared.bytes() + 4096, sizeof handle);
        Address theirs = 0;
        double begun = now_us();
        const Result opened = ask<Address *, IpcHandle, unsigned>("cuIpcOpenMemHandle_v2", &theirs,
                                                                  handle, ipc_lazy_peer_access);
        if (opened != success) {
            std::printf("imports: the driver maps no other process's memory: error %d\n", opened);
            return;
        }
        std::printf("imports: mapping 64 MiB of another process takes %.0f us\n", now_us() - begun);
        Address base = 0;
        size_t length = 0;
        call<Address *, size_t *, Address>("cuMemGetAddressRange_v2", &base, &length, theirs);
        std::printf("imports: the driver says %zu MiB at offset %llu of the mapping\n",
                    length >> 20, theirs - base);
        const Address own = allocate(bytes);
        const Stream stream = make_stream();
        begun = now_us();
        for (int i = 0; i < 100; i++) copy(own, theirs, bytes, stream);
        synchronize(stream);
        std::printf("imports: copies from it go at %.0f GB/s, read and written\n",
                    100 * 2e-3 * double(bytes) / (now_us() - begun));
        for (int i = 0; i < 2000; i++) copy(own, theirs, bytes, stream);
        kill(owner, SIGKILL);
        Result r = ask<Stream>("cuStreamSynchronize", stream);
        std::printf("imports: its owner is killed while copies read it: result %d\n", r);
        r = ask<Address, Address, size_t, Stream>("cuMemcpyAsync", own, theirs, bytes, stream);
        const Result after = ask<Stream>("cuStreamSynchronize", stream);
        std::printf("imports: a copy from it a moment later: results %d and %d\n", r, after);
        r = ask<Address>("cuIpcCloseMemHandle", theirs);
        const Result fine = ask<Address *, size_t>("cuMemAlloc_v2", &base, size_t{4096});
        std::printf("imports: unmapping it then: result %d; an allocation after that: %d\n", r,
                    fine);
    });
    kill(owner, SIGKILL);
    waitpid(owner, nullptr, 0);
}

void registration() {
    alone([] {
        open_gpu();
        for (size_t bytes :
             {size_t{64} << 10, size_t{2} << 20, size_t{64} << 20, size_t{1} << 30}) {
            Shared shared(bytes);
            double begun = now_us();
            const Result r = shared.pin();
            const double pinned = now_us() - begun;
            begun = now_us();
            if (r == success) shared.unpin();
            std::printf("registration: %zu KiB of shared memory: %.0f us, and %.0f us to end it "
                        "(result %d)\n",
                        bytes >> 10, pinned, now_us() - begun, r);
        }
        std::vector<std::unique_ptr<Shared>> rings;
        const double begun = now_us();
        Result r = success;
        for (int i = 0; i < 64 && r == success; i++) {
            rings.push_back(std::make_unique<Shared>(2 << 20));
            r = rings.back()->pin();
        }
        std::printf("registration: 64 times 2 MiB: %.0f us with their making (result %d)\n",
                    now_us() - begun, r);
    });
}

void rates() {
    alone([] {
        constexpr size_t bytes = 256 << 20;
        open_gpu();
        Shared pinned(bytes), plain(bytes), back(bytes);
        if (pinned.pin() != success || back.pin() != success) return;
        const Address one = allocate(bytes), two = allocate(bytes);
        const Stream stream = make_stream(), other = make_stream();
        const auto time = [&](const char *what, int factor, auto &&submit) {
            std::vector<double> times;
            for (int i = 0; i < 10; i++) {
                const double begun = now_us();
                submit();
                synchronize(stream);
                synchronize(other);
                times.push_back(now_us() - begun);
            }
            std::printf("rates: %s: %.1f GB/s\n", what,
                        factor * 1e-3 * double(bytes) / median(times));
        };
        const auto from_plain = reinterpret_cast<Address>(plain.bytes());
        time("from pinned memory to the GPU", 1,
             [&] { copy(one, pinned.device(), bytes, stream); });
        time("from the GPU to pinned memory", 1,
             [&] { copy(pinned.device(), one, bytes, stream); });
        time("both ways at once", 2, [&] {
            copy(one, pinned.device(), bytes, stream);
            copy(back.device(), two, bytes, other);
        });
        time("from other host memory to the GPU", 1, [&] { copy(one, from_plain, bytes, stream); });
        time("from the GPU to other host memory", 1, [&] { copy(from_plain, one, bytes, stream); });
        time("on the GPU, read and written", 2, [&] { copy(one, two, bytes, stream); });
    });
}

void calls() {
    alone([] {
        open_gpu();
        Shared shared(1 << 20);
        if (shared.pin() != success) return;
        const Address device = allocate(1 << 20);
        const Stream stream = make_stream();
        const auto time = [&](const char *what, auto &&f) {
            std::vector<double> times;
            for (int i = 0; i < 1000; i++) {
                const double begun = now_us();
                f();
                times.push_back(now_us() - begun);
            }
            synchronize(stream);
            std::printf("calls: %s: %.2f us (at most %.0f)\n", what, median(times), highest(times));
        };
        unsigned type = 0;
        int ordinal = 0;
        PointerAttribute wanted[] = {memory_type, device_ordinal};
        void *found[] = {&type, &ordinal};
        const auto attributes = [&](Address address) {
            call<unsigned, PointerAttribute *, void **, Address>("cuPointerGetAttributes", 2,
                                                                 wanted, found, address);
        };
        time("cuPointerGetAttributes of the GPU's memory", [&] { attributes(device); });
        int on_stack = 0;
        time("cuPointerGetAttributes of host memory",
             [&] { attributes(reinterpret_cast<Address>(&on_stack)); });
        time("cuStreamQuery", [&] { (void)ask<Stream>("cuStreamQuery", stream); });
        time("cuMemcpyAsync of 4 KiB to the GPU, submitted",
             [&] { copy(device, shared.device(), 4096, stream); });
        time("the same, done", [&] {
            copy(device, shared.device(), 4096, stream);
            synchronize(stream);
        });
        time("cuMemcpyAsync of 4 KiB to the host, done", [&] {
            copy(shared.device(), device, 4096, stream);
            synchronize(stream);
        });
        std::atomic<bool> called = false;
        time("cuLaunchHostFunc, called", [&] {
            called = false;
            call<Stream, HostFunction, void *>(
                "cuLaunchHostFunc", stream,
                [](void *flag) { static_cast<std::atomic<bool> *>(flag)->store(true); }, &called);
            while (!called) {
            }
        });
        uint32_t value = 0;
        time("cuStreamWriteValue32, seen", [&] {
            signal(stream, shared.at(0), ++value);
            (void)reaches(shared.word(0), value);
        });
    });
}

} // namespace
} // namespace facts

int main() {
    using namespace facts;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    landed();
    beside_held();
    words();
    for (const char *connections : {static_cast<const char *>(nullptr), "1"})
        held_streams(connections);
    hand_over(false);
    hand_over(true);
    for (int count : {1, 2, 4}) beside(count);
    imports();
    registration();
    rates();
    calls();
    return 0;
}
