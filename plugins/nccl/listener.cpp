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
    while (!guests_.empty()) drop(0);
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
    Hello hello;
    bool taken = false;
    if (Status s = take_hello(hello, taken); s != DTRAIN_OK) return s;
    if (taken) answer(hello);
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

void Listener::answer(const Hello &hello) {
    if (guests_.size() == most_guests) {
        log_.write(DTRAIN_LOG_WARN, "%s has not connected, and %s comes; the former is ignored",
                   guests_.front().who.c_str(), hello.who.c_str());
        drop(0);
    }
    Guest &guest = guests_.emplace_back();
    guest.who = hello.who;
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
        welcome.status = rail_.open_end(hello.data, guest.end);
        welcome.number = guest.end.own;
        if (welcome.status == DTRAIN_OK)
            welcome.status =
                rail_.receive_some(ready_tag(welcome.number), ready_bytes, guest.ready);
        if (welcome.status != DTRAIN_OK) welcome.text = error_text();
    }
    if (welcome.status != DTRAIN_OK)
        log_.write(DTRAIN_LOG_WARN, "%s is refused: %s", hello.who.c_str(), welcome.text.c_str());
    const Rail::Lock lock = control_.lock();
    Status s = control_.connect(hello.control, guest.control_link);
    if (s == DTRAIN_OK)
        s = control_.send_copy(*guest.control_link, welcome_tag(hello.attempt), welcome.encode(),
                               guest.welcome);
    if (s != DTRAIN_OK)
        log_.write(DTRAIN_LOG_WARN, "%s cannot be answered: %s", hello.who.c_str(),
                   error_text()); // finish() drops a guest without a welcome
}

// Whether the guest has failed, and whether it is connected.
void Listener::look(Guest &guest, bool &gone, bool &ready) {
    gone = guest.welcome == nullptr;
    if (gone) return;
    {
        const Rail::Lock lock = control_.lock();
        const bool sent = guest.welcome->done && guest.welcome->status == DTRAIN_OK;
        gone = !sent && (guest.welcome->done || guest.control_link->ended());
        if (gone || !sent) return;
    }
    gone = guest.ready == nullptr; // it was refused
    if (gone) return;
    const Rail::Lock lock = rail_.lock();
    const Operation &told = *guest.ready;
    ready = told.done && told.status == DTRAIN_OK &&
            decode_ready(told.buffer, told.bytes, guest.end.peer);
    gone = !ready && (told.done || guest.end.link->ended());
}

// Of the first that is connected. The control device has moved in take_hello().
Status Listener::finish(std::unique_ptr<Comm> &out) {
    if (guests_.empty()) return DTRAIN_OK;
    {
        const Rail::Lock lock = rail_.lock();
        if (Status s = rail_.progress(); s != DTRAIN_OK) return s;
    }
    for (size_t i = 0; i < guests_.size();) {
        Guest &guest = guests_[i];
        bool gone = false, ready = false;
        look(guest, gone, ready);
        if (ready) {
            out = std::make_unique<Comm>(rail_, Comm::Direction::receive,
                                         std::exchange(guest.end, {}), guest.who);
            drop(i);
            return DTRAIN_OK;
        }
        if (!gone) {
            i++;
            continue;
        }
        log_.write(DTRAIN_LOG_INFO, "%s was not connected", guest.who.c_str());
        drop(i);
    }
    return DTRAIN_OK;
}

// Ends what the guest still has; the connection that was made of it has the rest.
void Listener::drop(size_t number) {
    const Guest guest = std::move(guests_[number]);
    guests_.erase(guests_.begin() + ptrdiff_t(number));
    {
        const Rail::Lock lock = control_.lock();
        if (guest.welcome != nullptr) control_.drop(guest.welcome);
        if (guest.control_link != nullptr) control_.disconnect(guest.control_link);
    }
    const Rail::Lock lock = rail_.lock();
    if (guest.ready != nullptr) rail_.drop(guest.ready);
    if (guest.end.link != nullptr) rail_.discard_end(guest.end);
}

} // namespace dtrain::nccl
