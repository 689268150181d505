// Posts messages to the device and looks for their ends.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/comm.h"

#include "base/clock.h"
#include "base/status.h"
#include "nccl/messages.h"

#include <algorithm>
#include <sched.h>
#include <utility>

namespace dtrain::nccl {
namespace {

constexpr size_t most_requests = 256;  // in flight; NCCL has up to 32, times most_receives
constexpr uint32_t patient_tests = 50; // after the loss of the peer
constexpr int64_t goodbye_limit = 50 * ms;
constexpr int64_t close_limit = 2 * second; // transports promise 50 ms of progress()

} // namespace

Comm::Comm(Rail &rail, Direction direction, const End &end, std::string peer)
    : rail_(rail), direction_(direction), end_(end), peer_(std::move(peer)) {}

Comm::~Comm() {
    Rail::Lock lock = rail_.lock();
    std::vector<Operation *> left;
    for (Request &request : requests_) {
        if (request.comm == nullptr) continue;
        give_up(request);
        for (int i = 0; i < request.posted; i++) left.push_back(request.operations[i]);
    }
    const int64_t deadline = monotonic_clock().now_ns() + close_limit;
    const auto done = [](const Operation *operation) { return operation->done; };
    while (!std::ranges::all_of(left, done) && monotonic_clock().now_ns() < deadline) {
        if (rail_.progress() != DTRAIN_OK) break;
        lock.unlock(); // others may use the device
        sched_yield();
        lock.lock();
    }
    for (Operation *operation : left) rail_.release(operation);
    say_goodbye(lock);
    rail_.retire_end(end_);
}

// A connection that ends without it would leave the peer waiting, if this process lives on.
void Comm::say_goodbye(Rail::Lock &lock) {
    Operation *notice = nullptr;
    const int64_t deadline = monotonic_clock().now_ns() + goodbye_limit;
    while (!end_.link->ended() && monotonic_clock().now_ns() < deadline) {
        Status s = DTRAIN_OK;
        if (notice == nullptr) s = rail_.send_copy(*end_.link, closed_tag(end_.peer), {1}, notice);
        if ((s != DTRAIN_OK && s != DTRAIN_ERR_BUSY) || (notice != nullptr && notice->done)) break;
        if (rail_.progress() != DTRAIN_OK) break;
        lock.unlock();
        sched_yield();
        lock.lock();
    }
    if (notice != nullptr) rail_.release(notice); // it is still sent if the connection lasts
}

std::string Comm::text() const {
    return (direction_ == Direction::send ? "sending to " : "receiving from ") + peer_ + " by " +
           rail_.text();
}

Request *Comm::take() {
    if (free_.empty()) {
        if (requests_.size() == most_requests) return nullptr;
        free_.reserve(requests_.size() + 1); // so that test() needs no memory
        return &requests_.emplace_back();
    }
    Request *request = free_.back();
    free_.pop_back();
    return request;
}

Status Comm::post(std::span<const Buffer> buffers, Request *&out) {
    const Rail::Lock lock = rail_.lock();
    out = nullptr;
    if (direction_ == Direction::send && end_.ended())
        return fail(DTRAIN_ERR_PEER, "%s", end_.reason().c_str());
    if (unfinished_ != nullptr) {
        if (Status s = rail_.progress(); s != DTRAIN_OK) return s;
        if (Status s = post_rest(*unfinished_); s != DTRAIN_OK) return s;
        if (unfinished_ != nullptr) return DTRAIN_OK;
    }
    Request *request = take();
    if (request == nullptr) return DTRAIN_OK;
    request->comm = this;
    request->count = int(buffers.size());
    request->posted = 0;
    request->given_up = false;
    std::ranges::copy(buffers, request->buffers);
    Status s = post_rest(*request);
    if (s == DTRAIN_OK && request->posted > 0) {
        out = request;
        return DTRAIN_OK;
    }
    if (request->posted > 0) return s; // it stays with the connection until that is closed
    unfinished_ = nullptr;
    request->comm = nullptr;
    free_.push_back(request);
    if (s == DTRAIN_OK) s = rail_.progress(); // makes room
    return s;
}

Status Comm::post_rest(Request &request) {
    unfinished_ = &request;
    for (; request.posted < request.count; request.posted++) {
        const Buffer &buffer = request.buffers[request.posted];
        const dtrain_tp_iov_t iov = {buffer.data, buffer.bytes, buffer.registration};
        const uint64_t tag =
            data_tag(direction_ == Direction::send ? end_.peer : end_.own, buffer.tag);
        Operation *&operation = request.operations[request.posted];
        const Status s = direction_ == Direction::send ? rail_.send(*end_.link, tag, iov, operation)
                                                       : rail_.receive(tag, iov, operation);
        if (s == DTRAIN_ERR_BUSY) return DTRAIN_OK;
        if (s != DTRAIN_OK) return s;
    }
    unfinished_ = nullptr;
    return DTRAIN_OK;
}

bool Comm::all_done(const Request &request) const {
    return request.posted == request.count &&
           std::all_of(request.operations, request.operations + request.count,
                       [](const Operation *operation) { return operation->done; });
}

Status Comm::test(Request &request, bool &done, int *bytes) {
    const Rail::Lock lock = rail_.lock();
    done = false;
    if (!all_done(request)) {
        if (Status s = rail_.progress(); s != DTRAIN_OK) return s;
        if (unfinished_ == &request)
            if (Status s = post_rest(request); s != DTRAIN_OK) return s;
    }
    if (!all_done(request)) {
        if (end_.ended() && ++idle_tests_ >= patient_tests) give_up(request);
        return DTRAIN_OK;
    }
    idle_tests_ = 0;
    if (Status s = result_of(request); s != DTRAIN_OK) return s;
    for (int i = 0; i < request.count; i++) {
        if (bytes != nullptr) bytes[i] = int(request.operations[i]->bytes);
        rail_.release(request.operations[i]);
    }
    if (bytes != nullptr && direction_ == Direction::send) *bytes = int(request.buffers[0].bytes);
    request.comm = nullptr;
    free_.push_back(&request);
    done = true;
    return DTRAIN_OK;
}

Status Comm::result_of(const Request &request) const {
    for (int i = 0; i < request.count; i++) {
        const Operation &operation = *request.operations[i];
        if (operation.status == DTRAIN_OK) continue;
        if (operation.status == DTRAIN_ERR_TRUNCATED)
            return fail(operation.status,
                        "message %d of tag %d has %llu bytes, but the buffer has %zu", i,
                        request.buffers[i].tag, static_cast<unsigned long long>(operation.bytes),
                        request.buffers[i].bytes);
        if (end_.ended()) return fail(DTRAIN_ERR_PEER, "%s", end_.reason().c_str());
        return fail(operation.status, "%s", status_text(operation.status));
    }
    return DTRAIN_OK;
}

// Asks the transport to end what it has of the request.
void Comm::give_up(Request &request) {
    if (std::exchange(request.given_up, true)) return;
    if (unfinished_ == &request) unfinished_ = nullptr;
    request.count = request.posted;
    for (int i = 0; i < request.posted; i++)
        if (!request.operations[i]->done) rail_.withdraw(request.operations[i]);
}

} // namespace dtrain::nccl
