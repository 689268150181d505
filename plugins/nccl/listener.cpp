// The steps of accept().
// SPDX-License-Identifier: Apache-2.0
#include "nccl/listener.h"

#include "base/clock.h"
#include "base/status.h"

#include <utility>

namespace dtrain::nccl {

Listener::Listener(Rail &control, Rail &rail, Log &log, std::string who, int64_t patience_ns)
    : control_(control), rail_(rail), log_(log), who_(std::move(who)), patience_ns_(patience_ns) {}

Listener::~Listener() {
    drop_guest();
    if (number_ == 0) return;
    const Rail::Lock lock = control_.lock();
    if (hello_ != nullptr) control_.drop(hello_);
    control_.purge(hello_tag(number_), UINT64_MAX);
    control_.give_number(number_);
}

Status Listener::open(void *handle) {
    const Rail::Lock lock = control_.lock();
    number_ = control_.take_number();
    Handle own;
    own.address = control_.device().address();
    own.listener = number_;
    if (Status s = own.encode(handle); s != DTRAIN_OK) return s;
    return await_hello();
}

// Under the lock of the control device.
Status Listener::await_hello() {
    const Status s = control_.receive_some(hello_tag(number_), most_message_bytes, hello_);
    return s == DTRAIN_ERR_BUSY ? DTRAIN_OK : s; // step() tries again
}

Status Listener::step(std::unique_ptr<Comm> &out) {
    const std::lock_guard turn(mutex_);
    const int64_t now = monotonic_clock().now_ns();
    if (deadline_ns_ == 0 && __builtin_add_overflow(now, patience_ns_, &deadline_ns_))
        deadline_ns_ = INT64_MAX;
    if (guest_ == nullptr) {
        Hello hello;
        bool taken = false;
        if (Status s = take_hello(hello, taken); s != DTRAIN_OK) return s;
        if (taken)
            if (Status s = answer(hello); s != DTRAIN_OK) return s;
    }
    if (guest_ != nullptr)
        if (Status s = finish(out); s != DTRAIN_OK) return s;
    if (out != nullptr) {
        deadline_ns_ = 0;
    } else if (now >= deadline_ns_) {
        deadline_ns_ = 0; // NCCL may try again
        return fail(DTRAIN_ERR_TIMEOUT, "no rank has connected within %.1f s (option join.timeout)",
                    double(patience_ns_) * 1e-9);
    }
    return DTRAIN_OK;
}

Status Listener::take_hello(Hello &hello, bool &taken) {
    const Rail::Lock lock = control_.lock();
    if (Status s = control_.progress(); s != DTRAIN_OK) return s;
    if (hello_ == nullptr) return await_hello();
    if (!hello_->done) return DTRAIN_OK;
    taken = hello_->status == DTRAIN_OK && hello.decode(hello_->buffer.data(), hello_->bytes);
    if (!taken)
        log_.write(DTRAIN_LOG_WARN,
                   "a process that wants to connect sends what is no greeting of this plugin's "
                   "release; it is ignored");
    control_.release(std::exchange(hello_, nullptr));
    return await_hello();
}

Status Listener::answer(const Hello &hello) {
    guest_ = std::make_unique<Guest>();
    guest_->who = hello.who;
    Welcome welcome;
    welcome.who = who_;
    welcome.data = rail_.device().address();
    if (hello.transport != rail_.device().name()) {
        welcome.status = DTRAIN_ERR_CONFIG;
        welcome.text = "it uses the transport " + std::string(rail_.device().name()) +
                       ", the other side " + hello.transport +
                       "; set option transports alike on all hosts";
    } else {
        const Rail::Lock lock = rail_.lock();
        welcome.status = rail_.open_end(hello.data, guest_->end);
        welcome.number = guest_->end.own;
        if (welcome.status == DTRAIN_OK)
            welcome.status =
                rail_.receive_some(ready_tag(welcome.number), ready_bytes, guest_->ready);
        if (welcome.status != DTRAIN_OK) welcome.text = error_text();
    }
    if (welcome.status != DTRAIN_OK)
        log_.write(DTRAIN_LOG_WARN, "%s is refused: %s", hello.who.c_str(), welcome.text.c_str());
    const Rail::Lock lock = control_.lock();
    Status s = control_.connect(hello.control, guest_->control_link);
    if (s == DTRAIN_OK)
        s = control_.send_copy(*guest_->control_link, welcome_tag(hello.attempt), welcome.encode(),
                               guest_->welcome);
    if (s != DTRAIN_OK)
        log_.write(DTRAIN_LOG_WARN, "%s cannot be answered: %s", hello.who.c_str(), error_text());
    return DTRAIN_OK; // finish() drops a guest without a welcome
}

// Whether the guest has failed, and whether it is connected.
Status Listener::look(bool &gone, bool &ready) {
    gone = guest_->welcome == nullptr;
    if (gone) return DTRAIN_OK;
    {
        const Rail::Lock lock = control_.lock();
        if (Status s = control_.progress(); s != DTRAIN_OK) return s;
        const bool sent = guest_->welcome->done && guest_->welcome->status == DTRAIN_OK;
        gone = !sent && (guest_->welcome->done || guest_->control_link->ended());
        if (gone || !sent) return DTRAIN_OK;
    }
    gone = guest_->ready == nullptr; // it was refused
    if (gone) return DTRAIN_OK;
    const Rail::Lock lock = rail_.lock();
    if (Status s = rail_.progress(); s != DTRAIN_OK) return s;
    ready = guest_->ready->done && guest_->ready->status == DTRAIN_OK;
    const Operation &told = *guest_->ready;
    ready = ready && decode_ready(told.buffer, told.bytes, guest_->end.peer);
    gone = !ready && (told.done || guest_->end.link->ended());
    return DTRAIN_OK;
}

Status Listener::finish(std::unique_ptr<Comm> &out) {
    bool gone = false, ready = false;
    if (Status s = look(gone, ready); s != DTRAIN_OK) return s;
    if (!gone && !ready) return DTRAIN_OK;
    if (ready)
        out = std::make_unique<Comm>(rail_, Comm::Direction::receive,
                                     std::exchange(guest_->end, {}), guest_->who);
    else
        log_.write(DTRAIN_LOG_INFO, "%s was not connected", guest_->who.c_str());
    drop_guest();
    return DTRAIN_OK;
}

// Ends what the guest still has; the connection that was made of it has the rest.
void Listener::drop_guest() {
    if (guest_ == nullptr) return;
    {
        const Rail::Lock lock = control_.lock();
        if (guest_->welcome != nullptr) control_.drop(guest_->welcome);
        if (guest_->control_link != nullptr) control_.disconnect(guest_->control_link);
    }
    const Rail::Lock lock = rail_.lock();
    if (guest_->ready != nullptr) rail_.drop(guest_->ready);
    if (guest_->end.link != nullptr) rail_.discard_end(guest_->end);
    guest_.reset();
}

} // namespace dtrain::nccl
