// Passes operations to the device, and completions to those who wait for them.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/rail.h"

#include "base/status.h"

#include <utility>

#include <sys/random.h>

namespace dtrain::nccl {
namespace {

constexpr uint32_t completions_at_once = 64;

} // namespace

Rail::Rail(std::unique_ptr<transport::Device> device) : device_(std::move(device)) {
    // A number that was guessed is no danger: the handshake keeps strangers out. A random start
    // tells the messages of an earlier process apart.
    if (getrandom(&next_number_, sizeof next_number_, GRND_NONBLOCK) != sizeof next_number_)
        next_number_ = 1;
}

Rail::~Rail() {
    for (auto &[number, link] : links_)
        if (link->endpoint != nullptr) device_->ops().disconnect(link->endpoint);
    device_.reset(); // before the memory of what is in flight
}

std::string Rail::text() const {
    return std::string(device_->name()) + ":" + std::string(device_->label());
}

Status Rail::progress() {
    calls_++;
    if (broken_ != DTRAIN_OK) return fail(broken_, "device %s is broken", text().c_str());
    if (connecting_ > 0) set_error_text(""); // what follows is the reason of a failed connection
    dtrain_tp_done_t done[completions_at_once];
    const int32_t n = device_->ops().progress(device_->dev(), done, completions_at_once);
    if (n < 0 || n > int32_t(completions_at_once)) {
        broken_ = DTRAIN_ERR_TRANSPORT;
        return fail(broken_, "device %s has broken: %s", text().c_str(),
                    std::string(error_text()).c_str());
    }
    for (int32_t i = 0; i < n; i++) note(done[i]);
    if (n > 0 && !retired_.empty()) reap();
    return DTRAIN_OK;
}

void Rail::note(const dtrain_tp_done_t &done) {
    if (done.kind != DTRAIN_TP_SEND && done.kind != DTRAIN_TP_RECV) return note_link(done);
    auto *operation = reinterpret_cast<Operation *>(uintptr_t(done.cookie));
    operation->done = true;
    operation->status = done.status;
    operation->bytes = done.bytes;
    if (operation->dropped) release(operation);
}

void Rail::note_link(const dtrain_tp_done_t &done) {
    const auto found = links_.find(done.cookie);
    if (found == links_.end()) return; // it was disconnected meanwhile
    Link &link = *found->second;
    if (done.kind == DTRAIN_TP_CONNECT) {
        connecting_--;
        link.state = done.status == DTRAIN_OK ? Link::State::up : Link::State::failed;
        link.status = done.status;
        if (done.status != DTRAIN_OK)
            link.reason = *error_text() != 0 ? error_text() : status_text(done.status);
    } else if (done.kind == DTRAIN_TP_PEER_LOST) {
        if (link.state == Link::State::connecting) connecting_--;
        link.state = Link::State::lost;
        link.status = DTRAIN_ERR_PEER;
        link.reason = "the connection is lost";
    }
}

Status Rail::connect(const Bytes &address, Link *&out) {
    const dtrain_tp_ops_t &ops = device_->ops();
    if (Status s = ops.reachable(device_->dev(), address.data(), address.size()); s != DTRAIN_OK)
        return s;
    auto link = std::make_unique<Link>();
    link->number = next_link_++;
    Link &made = *link;
    links_.emplace(made.number, std::move(link));
    const Status s =
        ops.connect(device_->dev(), address.data(), address.size(), made.number, &made.endpoint);
    if (s != DTRAIN_OK) {
        links_.erase(made.number);
        return s;
    }
    connecting_++;
    out = &made;
    return DTRAIN_OK;
}

void Rail::disconnect(Link *link) {
    if (link->state == Link::State::connecting) connecting_--;
    device_->ops().disconnect(link->endpoint);
    links_.erase(link->number);
}

Operation &Rail::take() {
    if (free_.empty()) {
        operations_.emplace_back();
        free_.reserve(operations_.size()); // so that release() needs no memory
        return operations_.back();
    }
    Operation &operation = *free_.back();
    free_.pop_back();
    return operation;
}

Status Rail::begun(Status status, Operation &operation, Operation *&out) {
    if (status == DTRAIN_OK) {
        out = &operation;
    } else {
        operation.done = true; // it has never begun
        release(&operation);
    }
    return status;
}

Status Rail::send(Link &link, uint64_t tag, const dtrain_tp_iov_t &iov, Operation *&out) {
    Operation &operation = take();
    sends_++;
    return begun(
        device_->ops().send(link.endpoint, tag, &iov, iov.len > 0 ? 1 : 0, cookie_of(&operation)),
        operation, out);
}

Status Rail::receive(uint64_t tag, const dtrain_tp_iov_t &iov, Operation *&out) {
    Operation &operation = take();
    return begun(device_->ops().recv(device_->dev(), tag, UINT64_MAX, &iov, iov.len > 0 ? 1 : 0,
                                     cookie_of(&operation)),
                 operation, out);
}

Status Rail::send_copy(Link &link, uint64_t tag, const Bytes &bytes, Operation *&out) {
    Operation &operation = take();
    operation.buffer = bytes;
    sends_++;
    const dtrain_tp_iov_t iov = {operation.buffer.data(), bytes.size(), nullptr};
    return begun(device_->ops().send(link.endpoint, tag, &iov, 1, cookie_of(&operation)), operation,
                 out);
}

Status Rail::receive_some(uint64_t tag, size_t most, Operation *&out) {
    Operation &operation = take();
    operation.buffer.resize(most);
    const dtrain_tp_iov_t iov = {operation.buffer.data(), most, nullptr};
    return begun(
        device_->ops().recv(device_->dev(), tag, UINT64_MAX, &iov, 1, cookie_of(&operation)),
        operation, out);
}

void Rail::release(Operation *operation) {
    if (!operation->done) {
        operation->dropped = true;
        return;
    }
    operation->buffer = {};
    operation->done = operation->dropped = false;
    free_.push_back(operation);
}

std::string End::reason() const {
    return link->ended() ? link->reason : "the other side has closed the connection";
}

Status Rail::open_end(const Bytes &address, End &out) {
    End end;
    if (Status s = connect(address, end.link); s != DTRAIN_OK) return s;
    end.own = take_number();
    if (Status s = receive_some(closed_tag(end.own), 1, end.closed); s != DTRAIN_OK) {
        disconnect(end.link);
        give_number(end.own);
        return s;
    }
    out = end;
    return DTRAIN_OK;
}

void Rail::discard_end(const End &end) {
    drop(end.closed);
    disconnect(end.link);
    purge(data_tag(end.own, 0), data_mask);
    give_number(end.own);
}

void Rail::retire_end(const End &end) {
    purge(data_tag(end.own, 0), data_mask);
    retired_.push_back(end);
    reap();
}

void Rail::reap() {
    std::erase_if(retired_, [this](const End &end) {
        const bool ended = end.ended();
        if (ended) discard_end(end);
        return ended;
    });
}

uint32_t Rail::take_number() {
    do next_number_ = (next_number_ + 1) & INT32_MAX;
    while (next_number_ == 0 || !numbers_.insert(next_number_).second);
    return next_number_;
}

} // namespace dtrain::nccl
