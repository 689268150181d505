// Looks often after a message, and ever less often in silence.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/keeper.h"

#include "base/status.h"
#include "common/signals.h"

#include <algorithm>
#include <chrono>
#include <pthread.h>
#include <system_error>

namespace dtrain::nccl {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds shortest{1}, longest{16};

} // namespace

Status Keeper::start() {
    const tp::SignalsHeld held; // the thread blocks all signals
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error &e) {
        return fail(DTRAIN_ERR_LIMIT, "starting a thread for device %s: %s", rail_.text().c_str(),
                    e.what());
    }
    return DTRAIN_OK;
}

Keeper::~Keeper() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    stopping_.notify_one();
    thread_.join();
}

void Keeper::run() {
    pthread_setname_np(pthread_self(), "dtrain-nccl");
    milliseconds pause = shortest;
    uint64_t calls = 0, sends = 0;
    std::unique_lock lock(mutex_);
    while (!stopping_.wait_for(lock, pause, [this] { return stops_; })) {
        pause = std::min(2 * pause, longest);
        const Rail::Lock device = rail_.lock();
        if (rail_.sends() != sends) pause = shortest;
        sends = rail_.sends();
        // Whoever calls next gets the error of a device that breaks.
        if (rail_.calls() == calls) (void)rail_.progress();
        calls = rail_.calls();
    }
}

} // namespace dtrain::nccl
