// Streams: a thread each, or one for all; slow ones at random.
// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <cstdlib>
#include <random>
#include <unistd.h>

namespace fakecuda {
namespace {

std::atomic<bool> stalled{false};
std::atomic<int64_t> until_stall{0}; // pieces of work; then `stalled`; 0: it is not so
std::atomic<int64_t> in_flight{0};   // pieces of work, of all streams

unsigned number_of(const char *variable) {
    const char *text = std::getenv(variable);
    return text != nullptr ? unsigned(std::atoi(text)) : 0;
}

std::shared_ptr<Worker> worker_for_a_stream() {
    static const bool one = number_of("FAKECUDA_ONE_QUEUE") != 0;
    static std::shared_ptr<Worker> &shared = *new std::shared_ptr<Worker>;
    const std::lock_guard lock(fake().mutex);
    if (one && shared != nullptr) return shared;
    static unsigned seed = number_of("FAKECUDA_SEED");
    auto fresh = std::make_shared<Worker>(++seed, number_of("FAKECUDA_DELAY_US"));
    Worker::start(fresh);
    if (one) shared = fresh;
    return fresh;
}

// The default stream of a device.
Stream default_stream(int device) {
    static Stream streams[most_devices] = {};
    const std::lock_guard lock(fake().mutex);
    if (streams[device] == nullptr)
        streams[device] =
            reinterpret_cast<Stream>(new StreamState{worker_for_a_stream(), context_of(device)});
    return streams[device];
}

} // namespace

Worker::Worker(unsigned seed, unsigned delay_us)
    : random_(seed), delay_us_(seed % 3 == 0 ? 8 * delay_us : delay_us) {}

void Worker::start(const std::shared_ptr<Worker> &self) {
    std::thread([self] { self->loop(); }).detach();
}

void Worker::post(std::function<bool()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
}

void Worker::stop() {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
}

void Worker::loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return stop_ || !work_.empty(); });
        if (work_.empty()) return;
        std::function<bool()> work = std::move(work_.front());
        work_.pop_front();
        lock.unlock();
        if (until_stall > 0 && until_stall-- == 1) stalled = true;
        while (stalled) usleep(1000);
        if (delay_us_ > 0) usleep(random_() % delay_us_);
        for (unsigned tries = 0; !work(); tries++)
            if (tries > 100) usleep(50);
        work = nullptr;
        lock.lock();
    }
}

StreamState &state_of(Stream stream) {
    const auto value = reinterpret_cast<uintptr_t>(stream);
    if (value == 0 || value == stream_legacy || value == stream_per_thread)
        stream = default_stream(device_of(current_context()));
    return *reinterpret_cast<StreamState *>(stream);
}

Result submit(Stream stream, std::function<bool()> work) {
    StreamState &state = state_of(stream);
    if (state.context != current_context()) {
        complain("work for a stream of another context");
        return invalid_handle;
    }
    if (state.capturing) {
        complain("work for a stream that is captured");
        return capture_unsupported;
    }
    const std::shared_ptr<std::atomic<uint64_t>> done = state.done;
    state.submitted++;
    in_flight++;
    state.worker->post([work = std::move(work), done] {
        if (fake().sticky == success && !work())
            return false; // after a fault nothing runs any more
        (*done)++;
        in_flight--;
        return true;
    });
    return success;
}

void drain(Stream stream) {
    const StreamState &state = state_of(stream);
    while (*state.done != state.submitted) usleep(50);
}

} // namespace fakecuda

using namespace fakecuda;

// While stalled, no stream begins with any work.
FAKE_API void fakecuda_stall(int on) {
    until_stall = 0;
    stalled = on != 0;
}
// Until then streams begin with so many more pieces of work.
FAKE_API void fakecuda_stall_after(int pieces) { until_stall = pieces + 1; }
// Whether no stream has work.
FAKE_API int fakecuda_idle() { return in_flight == 0; }

FAKE_API Result cuStreamCreateWithPriority(Stream *out, unsigned, int) {
    ENTER("cuStreamCreateWithPriority", true);
    *out = reinterpret_cast<Stream>(new StreamState{worker_for_a_stream(), current_context()});
    return success;
}
FAKE_API Result cuStreamDestroy_v2(Stream stream) {
    ENTER("cuStreamDestroy_v2", true, true);
    StreamState *state = &state_of(stream);
    if (std::getenv("FAKECUDA_ONE_QUEUE") == nullptr) state->worker->stop();
    delete state;
    return success;
}
FAKE_API Result cuStreamQuery(Stream stream) {
    ENTER("cuStreamQuery", true);
    StreamState &state = state_of(stream);
    return *state.done == state.submitted ? success : not_ready;
}
FAKE_API Result cuStreamSynchronize(Stream stream) {
    ENTER("cuStreamSynchronize", true);
    drain(stream);
    return fake().sticky;
}
FAKE_API Result cuStreamGetCtx(Stream stream, Context *context) {
    ENTER("cuStreamGetCtx");
    *context = state_of(stream).context;
    return success;
}
FAKE_API Result cuStreamIsCapturing(Stream stream, int *state) {
    ENTER("cuStreamIsCapturing", true);
    *state = state_of(stream).capturing ? capture_active : capture_none;
    return success;
}
FAKE_API Result cuStreamBeginCapture_v2(Stream stream, int) {
    ENTER("cuStreamBeginCapture_v2", true);
    state_of(stream).capturing = true;
    return success;
}
FAKE_API Result cuStreamEndCapture(Stream stream, void **graph) {
    ENTER("cuStreamEndCapture", true);
    state_of(stream).capturing = false;
    *graph = nullptr;
    return success;
}

namespace {
struct Held { // counts a stream that a word holds
    explicit Held(int of) : device(of) { fake().held[device]++; }
    ~Held() { fake().held[device]--; }
    Held(const Held &) = delete;
    const int device;
};
bool is_word(Address p) {
    return p % 4 == 0 && (fake().is_device(p) || find_pinned(p, 4) != nullptr);
}
} // namespace

FAKE_API Result cuStreamWriteValue32_v2(Stream stream, Address p, uint32_t value, unsigned) {
    ENTER("cuStreamWriteValue32_v2", true);
    if (!is_word(p)) return invalid_value;
    return submit(stream, [=] {
        if (void *at = reach(p, 4, "write value"))
            __atomic_store_n(static_cast<uint32_t *>(at), value, __ATOMIC_RELEASE);
        return true;
    });
}
FAKE_API Result cuStreamWaitValue32_v2(Stream stream, Address p, uint32_t value, unsigned flags) {
    ENTER("cuStreamWaitValue32_v2", true);
    if (!is_word(p) || flags != wait_at_least) return invalid_value;
    const auto held = std::make_shared<Held>(device_of(current_context()));
    return submit(stream, [=] {
        (void)held; // until this is done
        void *at = reach(p, 4, "wait value");
        if (at == nullptr) return true;
        return int32_t(__atomic_load_n(static_cast<uint32_t *>(at), __ATOMIC_ACQUIRE) - value) >= 0;
    });
}
FAKE_API Result cuLaunchHostFunc(Stream stream, HostFunction function, void *argument) {
    ENTER("cuLaunchHostFunc", true);
    return submit(stream, [=] {
        in_host_function = true;
        function(argument);
        in_host_function = false;
        return true;
    });
}
