// Copies by way of pinned memory, and submits work.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/device_stage.h"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <utility>

namespace dtrain::ps {
namespace {

constexpr int64_t check_interval = 2 * ms;
constexpr int64_t stale = 1 * second; // who has sent a probe has not asked for it so long

} // namespace

Status DeviceStage::open(accel::Domain &domain, Chores *chores, std::shared_ptr<DeviceStage> &out) {
    std::shared_ptr<DeviceStage> made(new DeviceStage(domain, chores));
    if (Status s = domain.pinned().take(1, made->words_); s != DTRAIN_OK) return s;
    if (Status s =
            made->queue_.open(domain.ops(), domain.dev(), *made->words_, 0,
                              domain.attr().limit_bytes, domain.config().waker, &made->calls_);
        s != DTRAIN_OK)
        return accel::explain(s, domain.name().c_str(), "table");
    for (Slot &slot : made->slots_)
        if (Status s = domain.pinned().take(slot_bytes, slot.block); s != DTRAIN_OK) return s;
    out = std::move(made);
    return DTRAIN_OK;
}

DeviceStage::~DeviceStage() {
    calls_.finish();
    drain();
    const bool idle =
        words_ == nullptr || queue_.is_idle(); // else the device may still write to its memory
    queue_.close();
    for (Slot &slot : slots_)
        if (slot.block != nullptr)
            domain_.pinned().give_back(std::move(slot.block), [=] { return idle; });
    if (words_ != nullptr) domain_.pinned().give_back(std::move(words_), [=] { return idle; });
}

void DeviceStage::drain() { queue_.drain(monotonic_clock().now_ns() + patience); }

Status DeviceStage::reserve(uint64_t bytes) {
    if (scratch_ != nullptr && scratch_->bytes() >= bytes) return DTRAIN_OK;
    std::shared_ptr<accel::DeviceMemory> larger;
    if (Status s = accel::DeviceMemory::allocate(domain_, bytes, false, larger); s != DTRAIN_OK)
        return s;
    drain();
    scratch_ = std::move(larger);
    return DTRAIN_OK;
}

void DeviceStage::take_scratch(DeviceStage &from) {
    if (scratch_ != nullptr && scratch_->bytes() >= from.scratch_->bytes()) return;
    std::swap(scratch_, from.scratch_);
    if (from.scratch_ != nullptr) drop(std::move(from.scratch_));
}

void DeviceStage::drop(std::shared_ptr<accel::DeviceMemory> memory) {
    const auto free = [stage = shared_from_this(), memory = std::move(memory)]() mutable {
        stage->drain();
        memory.reset();
    };
    if (chores_ == nullptr || chores_->start(free, nullptr) != DTRAIN_OK) drain();
}

Status DeviceStage::wait(const Posted &posted, int64_t patience_ns) {
    const Status s = queue_.wait(posted, monotonic_clock().now_ns() + patience_ns);
    return s == DTRAIN_OK ? s : accel::explain(s, domain_.name().c_str(), "table");
}

// Its last user hears whether his work could be submitted, which is known when the device has
// passed it, or will be at once.
Status DeviceStage::wait_for(const Slot &slot, int64_t patience_ns) {
    const int64_t deadline_ns = monotonic_clock().now_ns() + patience_ns;
    if (Status s = wait({slot.last.batch, nullptr}, patience_ns); s != DTRAIN_OK) return s;
    while (!is_free(slot)) {
        if (monotonic_clock().now_ns() >= deadline_ns + brief)
            return fail(DTRAIN_ERR_TIMEOUT,
                        "accelerator %s: table: no answer of the call that gave it work in %lld ms",
                        domain_.name().c_str(), static_cast<long long>((patience_ns + brief) / ms));
        sched_yield();
    }
    return DTRAIN_OK;
}

Status DeviceStage::take_slot(Slot *&out, int64_t patience_ns) {
    Slot &slot = slots_[next_];
    if (slot.kept)
        if (Status s = submit_now(no_work, false); s != DTRAIN_OK) return s;
    if (Status s = wait_for(slot, patience_ns); s != DTRAIN_OK) return s;
    if (slot.read != nullptr) slot.read->arrive();
    next_ = (next_ + 1) % slots_.size();
    out = &slot;
    return DTRAIN_OK;
}

void DeviceStage::use(const DeviceUser &user, const std::shared_ptr<accel::DeviceMemory> &scratch) {
    for (const auto &memory : {user.memory, scratch})
        if (std::ranges::none_of(users_, [&](const auto &it) { return it.memory == memory; }))
            users_.push_back({memory, user.health});
}

void DeviceStage::copy_by(Slot &slot, void *to, const void *from, uint64_t bytes) {
    std::memcpy(slot.block->host(), from, bytes);
    copies_.push_back({to, slot.block->device(), bytes});
    slot.kept = true;
    domain_.to_device().count(bytes);
}

Status DeviceStage::put(const DeviceUser &user, void *to, const void *from, uint64_t bytes) {
    if (room_ns_ == patience)
        if (Status s = finish_waiting(patience); s != DTRAIN_OK) return s;
    for (uint64_t at = 0; at < bytes; at += slot_bytes) {
        const uint64_t n = std::min(slot_bytes, bytes - at);
        uint8_t *const there = static_cast<uint8_t *>(to) + at;
        const char *const here = static_cast<const char *>(from) + at;
        Slot *slot = nullptr;
        const Status s = waiting_.empty() ? take_slot(slot, room_ns_) : DTRAIN_ERR_TIMEOUT;
        if (s == DTRAIN_OK) {
            copy_by(*slot, there, here, n);
            use(user, scratch_);
        } else if (s == DTRAIN_ERR_TIMEOUT && room_ns_ == brief) {
            waiting_.push_back({user, scratch_, there, {here, here + n}, nullptr});
        } else {
            return s;
        }
    }
    return DTRAIN_OK;
}

Status DeviceStage::submit(const DeviceUser &user, Work work) {
    if (!waiting_.empty()) {
        waiting_.push_back({user, scratch_, nullptr, {}, std::move(work)});
        return DTRAIN_OK;
    }
    use(user, scratch_);
    return submit_now(std::move(work), false);
}

Status DeviceStage::flush() {
    return waiting_.empty() ? submit_now(no_work, false) : Status{DTRAIN_OK};
}

Status DeviceStage::submit_now(Work work, bool wakes) {
    const auto users = std::make_shared<const std::vector<DeviceUser>>(std::exchange(users_, {}));
    bool begun = false;
    const Status s = queue_.post(
        [users, &ops = domain_.ops(), longest = domain_.attr().limit_bytes,
         copies = std::exchange(copies_, {}),
         work = std::move(work)](dtrain_dv_queue_t *queue, bool &any) -> Status {
            any = true;
            const Status copied = submit_copies(ops, queue, copies, longest);
            return copied == DTRAIN_OK ? work(queue) : copied;
        },
        last_, begun, wakes);
    for (Slot &slot : slots_)
        if (std::exchange(slot.kept, false)) slot.last = last_;
    for (const DeviceUser &user : *users) user.health->watch(last_);
    return s == DTRAIN_OK ? s : accel::explain(s, domain_.name().c_str(), "table");
}

Status DeviceStage::submit_read(const DeviceUser &user, Slot &slot, const uint8_t *from,
                                uint64_t bytes, bool wakes) {
    slot.kept = true;
    use(user, nullptr);
    const accel::Copy copy = {slot.block->device(), from, bytes};
    return submit_now(
        [copy, &ops = domain_.ops(),
         longest = domain_.attr().limit_bytes](dtrain_dv_queue_t *queue) {
            return accel::submit_copies(ops, queue, {&copy, 1}, longest);
        },
        wakes);
}

Status DeviceStage::get(const DeviceUser &user, void *to, const void *from, uint64_t bytes,
                        bool now) {
    const int64_t most_ns = now ? patience : brief;
    if (Status s = finish_waiting(most_ns); s != DTRAIN_OK) return s;
    for (uint64_t at = 0; at < bytes; at += slot_bytes) {
        const uint64_t n = std::min(slot_bytes, bytes - at);
        Slot *slot = nullptr;
        if (Status s = take_slot(slot, most_ns); s != DTRAIN_OK) return s;
        if (Status s = submit_read(user, *slot, static_cast<const uint8_t *>(from) + at, n, false);
            s != DTRAIN_OK)
            return s;
        if (Status s = wait(slot->last, most_ns); s != DTRAIN_OK) return s;
        std::memcpy(static_cast<char *>(to) + at, slot->block->host(), n);
        domain_.to_host().count(n);
    }
    return DTRAIN_OK;
}

Status DeviceStage::finish() {
    Status s = finish_waiting(patience);
    if (s == DTRAIN_OK) s = flush();
    return s == DTRAIN_OK ? await_last() : s;
}

Status DeviceStage::await_last() {
    const Status s = finish_waiting(patience);
    return s == DTRAIN_OK ? wait(last_, patience) : s;
}

Status DeviceStage::finish_waiting(int64_t patience_ns) {
    for (;;) {
        submit_waiting();
        if (waiting_.empty()) return DTRAIN_OK;
        if (Status s = wait_for(slots_[next_], patience_ns); s != DTRAIN_OK) return s;
    }
}

// ---- without waiting ----

Status DeviceStage::check(int64_t deadline_ns) {
    const int64_t now_ns = monotonic_clock().now_ns();
    Status s = DTRAIN_OK;
    if (now_ns >= deadline_ns) {
        s = fail(DTRAIN_ERR_TIMEOUT, "timed out; the accelerator has done nothing for %lld s",
                 static_cast<long long>(patience / second));
    } else if (now_ns - checked_ns_ >= check_interval) {
        checked_ns_ = now_ns;
        s = queue_.check();
    }
    return s == DTRAIN_OK ? s : accel::explain(s, domain_.name().c_str(), "table");
}

// Its deadline is that of the first that nobody has seen pass.
Status DeviceStage::Probe::send(DeviceStage &stage) {
    if (!out) {
        if (Status s = stage.submit_now(no_work, true); s != DTRAIN_OK) return s;
        out = true;
        posted = stage.last_;
        deadline_ns = monotonic_clock().now_ns() + patience;
    }
    return stage.check(deadline_ns);
}

// Whoever gave it has gone, so each failure is noted for its table.
void DeviceStage::submit_waiting() {
    while (!waiting_.empty()) {
        Waiting &one = waiting_.front();
        Slot *slot = nullptr;
        Status s = DTRAIN_OK;
        if (one.work != nullptr) {
            use(one.user, one.scratch);
            s = submit_now(std::move(one.work), false);
        } else {
            if (slots_[next_].kept) s = submit_now(no_work, false);
            if (s == DTRAIN_OK && !is_free(slots_[next_])) {
                if (queue_.passed(for_room_.posted)) for_room_.out = false;
                s = for_room_.send(*this);
                if (s == DTRAIN_OK) return;
            }
            if (s == DTRAIN_OK) s = take_slot(slot, 0);
            if (s == DTRAIN_OK) {
                copy_by(*slot, one.to, one.bytes.data(), one.bytes.size());
                use(one.user, one.scratch);
            }
        }
        (void)one.user.health->outcome(s);
        waiting_.pop_front();
    }
}

Status DeviceStage::look(uint64_t bytes, bool &ready, bool only_asks) {
    go_on();
    if (bytes <= all_bytes) {
        uint64_t room = 0;
        for (size_t i = 0; i < slots_.size() && is_free(slots_[(next_ + i) % slots_.size()]); i++)
            room += slot_bytes;
        ready = waiting_.empty() && bytes <= room;
        if (ready) return DTRAIN_OK;
        if (queue_.passed(for_room_.posted)) for_room_.out = false;
        return for_room_.send(*this);
    }
    const int64_t now_ns = monotonic_clock().now_ns();
    const bool fresh = now_ns - std::exchange(asked_ns_, now_ns) < stale;
    const bool passed = probe_.out && waiting_.empty() && queue_.passed(probe_.posted);
    ready = passed && fresh;
    if (passed) probe_.out = fresh && only_asks;
    return ready ? Status{DTRAIN_OK} : probe_.send(*this);
}

DeviceRead::DeviceRead(std::shared_ptr<DeviceStage> stage, Source source, Take take)
    : stage_(std::move(stage)), source_(std::move(source)), take_(std::move(take)),
      deadline_ns_(monotonic_clock().now_ns() + DeviceStage::patience) {}

DeviceRead::~DeviceRead() { let_go(); }

void DeviceRead::let_go() {
    if (slot_ != nullptr) slot_->read = nullptr;
    slot_ = nullptr;
}

Delivery::State DeviceRead::look() {
    if (state_ != State::coming) return state_;
    if (Status s = advance(); s != DTRAIN_OK) fail(s);
    return state_;
}

void DeviceRead::fail(Status status) {
    state_ = State::failed;
    let_go();
    (void)source_.user.health->outcome(status);
}

Status DeviceRead::advance() {
    DeviceStage &stage = *stage_;
    stage.go_on();
    if (slot_ == nullptr && stage.waiting_.empty() && stage.is_free(stage.slots_[stage.next_])) {
        DeviceStage::Slot *slot = nullptr;
        if (Status s = stage.take_slot(slot, DeviceStage::patience); s != DTRAIN_OK) return s;
        if (Status s = stage.submit_read(source_.user, *slot, source_.from, source_.bytes, true);
            s != DTRAIN_OK)
            return s;
        slot->read = this;
        slot_ = slot;
    }
    if (slot_ == nullptr || !stage.is_free(*slot_)) return stage.check(deadline_ns_);
    arrive();
    return DTRAIN_OK;
}

// What was submitted before it is known now, and so is whether it could be submitted itself.
void DeviceRead::arrive() {
    if (source_.user.health->outcome(DTRAIN_OK) != Reason::none) return fail(DTRAIN_OK);
    stage_->domain_.to_host().count(source_.bytes);
    take_(slot_->block->host());
    let_go();
    state_ = State::there;
}

} // namespace dtrain::ps
