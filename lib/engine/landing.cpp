// Copies results to accelerators, and completes the request when they are there.
// SPDX-License-Identifier: Apache-2.0
#include "engine/landing.h"

#include "device/kernels.h"

#include <algorithm>
#include <utility>

namespace dtrain::engine {
namespace {

constexpr uint64_t elements_per_step = 256 << 10;
constexpr uint32_t looks_per_check = 256; // asking the accelerator's library costs more than a look

} // namespace

Landing::Landing(Request *completed, Agent &agent, std::shared_ptr<accel::StagedBuffers> buffers,
                 Results results, int64_t input_until_ns, int64_t result_limit_ns)
    : Operation(completed), agent_(agent), buffers_(std::move(buffers)), results_(results),
      input_until_ns_(input_until_ns) {
    polled = true;
    time_limit_ns = result_limit_ns;
}

Landing::Landing(Request *completed, Agent &agent, std::shared_ptr<accel::StagedBuffers> buffers,
                 const accel::DirectBuffers &direct, bool on_stream, int64_t input_until_ns,
                 int64_t result_limit_ns)
    : Operation(completed), agent_(agent), buffers_(std::move(buffers)), results_(Results::all),
      input_until_ns_(on_stream ? INT64_MAX : input_until_ns), direct_(direct),
      decides_on_stream_(on_stream), choice_(Choice::open) {
    polled = true;
    time_limit_ns = result_limit_ns;
}

Status Landing::begin_to_decide(bool &gated) {
    gated = decides_on_stream_;
    if (!gated) return DTRAIN_OK;
    stream_waits_ = true;
    return buffers_->begin_wait();
}

Status Landing::use_copies() {
    choice_ = Choice::copies;
    if (decides_on_stream_ && !stream_waits_) return buffers_->begin_copies();
    // The stream is there, so the time counts.
    if (decides_on_stream_ && time_limit_ns >= 0 &&
        __builtin_add_overflow(agent_.now(), time_limit_ns, &input_until_ns_))
        input_until_ns_ = INT64_MAX;
    return buffers_->begin_fetch();
}

Status Landing::look() {
    if (buffers_->is_fetched()) {
        if (Status s = buffers_->fetched(); s != DTRAIN_OK) return s;
        return choice_ == Choice::open || scale_some_input() ? DTRAIN_OK : DTRAIN_IN_PROGRESS;
    }
    if (agent_.now() >= input_until_ns_) return buffers_->await_fetched(input_until_ns_);
    if (++looks_ % looks_per_check != 0) return DTRAIN_IN_PROGRESS;
    const Status s = buffers_->check_fetch();
    return s == DTRAIN_OK ? Status{DTRAIN_IN_PROGRESS} : s;
}

Status Landing::wait(int64_t until_ns) {
    if (buffers_->on_stream())
        return dtrain::fail(DTRAIN_ERR_UNSUPPORTED, "stream: a prescale needs a send buffer of the "
                                                    "host at once; synchronize the stream and "
                                                    "leave stream_type 0");
    if (Status s = buffers_->await_fetched(until_ns); s != DTRAIN_OK) return s;
    while (!scale_some_input()) continue;
    return DTRAIN_OK;
}

// Multiplies a part of the copies, as the agent has other work, too; true: all of them are done.
bool Landing::multiply_some(Parts &parts, double factor) const {
    const uint64_t element = device::dtype_size(scale_.dtype);
    for (uint64_t left = elements_per_step; left > 0 && !parts.empty();) {
        std::span<uint8_t> &part = parts.back();
        const uint64_t count = std::min<uint64_t>(left, part.size() / element);
        device::multiply(part.data(), part.data(), count, scale_.dtype, factor);
        part = part.subspan(count * element);
        left -= count;
        if (part.empty()) parts.pop_back();
    }
    return parts.empty();
}

bool Landing::scale_some_input() {
    if (scale_.before == 1) return true;
    if (!std::exchange(scales_, true)) unscaled_ = buffers_->inputs();
    return multiply_some(unscaled_, scale_.before);
}

bool Landing::begin(Outcome &outcome) {
    Status s = outcome.status;
    if (s != DTRAIN_OK) buffers_->release();
    const bool copies = choice_ == Choice::copies;
    if (s == DTRAIN_OK && (buffers_->on_stream() || (copies && buffers_->has_outputs()))) {
        unscaled_ = copies && scale_.after != 1 ? buffers_->outputs() : Parts{};
        if (scale_.after != 1 && !scale_.on_host.empty()) unscaled_.push_back(scale_.on_host);
        if (copies && unscaled_.empty())
            s = buffers_->begin_store(results_ == Results::received ? outcome.bytes : UINT64_MAX);
        if (s == DTRAIN_OK) {
            outcome_ = outcome;
            // The operation may have been canceled until now.
            if (request->cancellable != nullptr) request->cancellable = this;
            Agent &agent = agent_;   // once it is posted, another thread may end it
            agent.post_inside(this); // the caller may hold the lock
            if (!agent.has_poller()) agent.call_helper();
            return true;
        }
        outcome.status = s;
        request->set_error(error_text());
    }
    dispose();
    return false;
}

int Landing::advance(Agent &agent) {
    if (!unscaled_.empty()) {
        if (!multiply_some(unscaled_, scale_.after)) return 1;
        if (Status s = buffers_->begin_store(UINT64_MAX); s != DTRAIN_OK) end(agent, s);
        return 1;
    }
    if (buffers_->is_stored()) {
        end(agent, buffers_->stored());
        return 1;
    }
    if (++looks_ % looks_per_check == 0)
        if (Status s = buffers_->check_store(); s != DTRAIN_OK) end(agent, s);
    return 0;
}

void Landing::timed_out(Agent &agent) {
    end(agent, dtrain::fail(DTRAIN_ERR_TIMEOUT,
                            "timed out; the accelerator has not finished copying the result yet"));
}

void Landing::end(Agent &agent, Status status) {
    outcome_.status = status;
    agent.finish(this, outcome_, error_text());
}

void Landing::dispose() {
    request->landing = nullptr;
    delete this;
}

} // namespace dtrain::engine
