// The steps of connect().
// SPDX-License-Identifier: Apache-2.0
#include "nccl/dialer.h"

#include "base/clock.h"
#include "base/status.h"

#include <utility>

namespace dtrain::nccl {
namespace {

// Networks lose packets, and a host may be slow to accept.
constexpr int64_t dial_for = 15 * second, pause = 200 * ms;

bool may_pass(Status status) { return status != DTRAIN_ERR_AUTH && status != DTRAIN_ERR_VERSION; }

} // namespace

Dialer::Dialer(Rail &control, Rail &rail, Handle handle, std::string who, int64_t deadline_ns)
    : control_(control), rail_(rail), handle_(std::move(handle)), who_(std::move(who)),
      deadline_ns_(deadline_ns), begun_ns_(monotonic_clock().now_ns()) {
    const Rail::Lock lock = control_.lock();
    attempt_ = control_.take_number();
}

Dialer::~Dialer() {
    {
        const Rail::Lock lock = control_.lock();
        hang_up();
        control_.purge(welcome_tag(attempt_), UINT64_MAX);
        control_.give_number(attempt_);
    }
    if (end_.link == nullptr) return;
    const Rail::Lock lock = rail_.lock();
    if (ready_ != nullptr) rail_.drop(ready_);
    rail_.discard_end(end_);
}

// Ends what goes on with the control device. Under its lock.
void Dialer::hang_up() {
    for (Operation *&operation : {std::ref(hello_), std::ref(welcome_)}) {
        if (operation != nullptr) control_.drop(std::exchange(operation, nullptr));
    }
    if (control_link_ != nullptr) control_.disconnect(std::exchange(control_link_, nullptr));
}

Status Dialer::step(std::unique_ptr<Comm> &out) {
    if (!welcomed_) {
        const Rail::Lock lock = control_.lock();
        if (Status s = control_.progress(); s != DTRAIN_OK) return s;
        if (control_link_ == nullptr && monotonic_clock().now_ns() >= pause_until_ns_)
            if (Status s = call(); s != DTRAIN_OK) return s;
        if (control_link_ != nullptr)
            if (Status s = hear(); s != DTRAIN_OK) return s;
        if (!welcomed_) return late();
        hang_up();
    }
    return join(out);
}

// Connects the device, and says so to the other side.
Status Dialer::join(std::unique_ptr<Comm> &out) {
    const Rail::Lock lock = rail_.lock();
    if (end_.link == nullptr) {
        if (Status s = rail_.open_end(answer_.data, end_); s != DTRAIN_OK) return s;
        end_.peer = answer_.number;
    }
    if (Status s = rail_.progress(); s != DTRAIN_OK) return s;
    if (end_.link->ended()) return fail(end_.link->status, "%s", end_.reason().c_str());
    if (end_.link->state != Link::State::up) return late();
    if (ready_ == nullptr) {
        const Status s =
            rail_.send_copy(*end_.link, ready_tag(end_.peer), encode_ready(end_.own), ready_);
        if (s != DTRAIN_OK && s != DTRAIN_ERR_BUSY) return s;
    }
    if (ready_ == nullptr || !ready_->done) return late();
    if (ready_->status != DTRAIN_OK) return fail(ready_->status, "the connection is lost");
    rail_.release(std::exchange(ready_, nullptr));
    out = std::make_unique<Comm>(rail_, Comm::Direction::send, end_, answer_.who);
    end_ = {};
    return DTRAIN_OK;
}

Status Dialer::call() {
    if (Status s = control_.connect(handle_.address, control_link_); s != DTRAIN_OK) return s;
    const Hello hello = {.attempt = attempt_,
                         .transport = std::string(rail_.device().name()),
                         .who = who_,
                         .control = control_.device().address(),
                         .data = rail_.device().address()};
    Status s = control_.receive_some(welcome_tag(attempt_), most_message_bytes, welcome_);
    if (s == DTRAIN_OK)
        s = control_.send_copy(*control_link_, hello_tag(handle_.listener), hello.encode(), hello_);
    if (s == DTRAIN_ERR_BUSY) return try_again();
    return s;
}

Status Dialer::hear() {
    if (control_link_->state == Link::State::failed) {
        const Status status = control_link_->status;
        if (may_pass(status) && monotonic_clock().now_ns() < begun_ns_ + dial_for)
            return try_again();
        return fail(status, "%s", std::string(control_link_->reason).c_str());
    }
    if (welcome_->done) {
        if (welcome_->status != DTRAIN_OK ||
            !answer_.decode(welcome_->buffer.data(), welcome_->bytes))
            return fail(DTRAIN_ERR_VERSION, "the other side's answer is not one of this plugin's "
                                            "release");
        if (answer_.status != DTRAIN_OK)
            return fail(answer_.status, "%s refuses the connection: %s", answer_.who.c_str(),
                        answer_.text.c_str());
        welcomed_ = true;
        return DTRAIN_OK;
    }
    if (control_link_->state == Link::State::lost)
        return fail(DTRAIN_ERR_PEER, "the other process has ended, or has closed its devices");
    return DTRAIN_OK;
}

std::string Dialer::text() {
    char route[256] = "";
    const transport::Device &device = control_.device();
    const Rail::Lock lock = control_.lock();
    if (device.ops().route != nullptr)
        (void)device.ops().route(device.dev(), handle_.address.data(), handle_.address.size(),
                                 route, sizeof route);
    return "by " + rail_.text() + (*route != 0 ? ", " : "") + route;
}

Status Dialer::try_again() {
    hang_up();
    pause_until_ns_ = monotonic_clock().now_ns() + pause;
    return DTRAIN_OK;
}

Status Dialer::late() {
    if (monotonic_clock().now_ns() < deadline_ns_) return DTRAIN_OK;
    return fail(DTRAIN_ERR_TIMEOUT,
                "the other side has not accepted within %.1f s (option join.timeout); it may have "
                "closed its listener, or may hang",
                double(deadline_ns_ - begun_ns_) * 1e-9);
}

} // namespace dtrain::nccl
