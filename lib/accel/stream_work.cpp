// Puts copies and words into a stream.
// SPDX-License-Identifier: Apache-2.0
#include "accel/stream_work.h"

#include "accel/quiet.h"

#include <new>
#include <string>

namespace dtrain::accel {

Status StreamWork::open(Domain &domain, void *stream, std::shared_ptr<StreamWork> &out) {
    const dtrain_dv_ops_t &ops = domain.ops();
    const char *name = domain.name().c_str();
    if ((domain.attr().caps & DTRAIN_DV_CAP_HOLD) == 0 || ops.hold == nullptr)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "accelerator %s: its streams cannot wait for the host; synchronize the stream "
                    "and leave stream_type 0",
                    name);
    std::shared_ptr<StreamWork> made(new StreamWork(domain));
    Status s = domain.pinned().take(sizeof(Words), made->page_);
    if (s != DTRAIN_OK) return explain(s, name, "words for a stream");
    made->words_ = new (made->page_->host()) Words;
    set_error_text("");
    s = ops.queue_adopt(domain.dev(), stream, &made->queue_);
    if (s != DTRAIN_OK) {
        made->queue_ = nullptr;
        return explain(s, name, "stream");
    }
    if (ops.capturing != nullptr)
        if (s = ops.capturing(made->queue_); s != DTRAIN_OK) return explain(s, name, "stream");
    OwnQueue::expect_waiting_streams();
    out = std::move(made);
    return DTRAIN_OK;
}

bool StreamWork::is_finished() {
    if (!has(words_->finished)) return false;
    end_wait();
    return true;
}
void StreamWork::end_wait() {
    if (!waits_.exchange(false)) return;
    Quiet::end_wait();
    domain_.after_wait();
}

StreamWork::~StreamWork() {
    end_wait();
    if (queue_ != nullptr) domain_.ops().queue_free(queue_);
    if (page_ != nullptr) domain_.pinned().give_back(std::move(page_));
}

uint64_t StreamWork::offset(const std::atomic<uint32_t> &word) const {
    return uint64_t(reinterpret_cast<const uint8_t *>(&word) - page_->host());
}

Status StreamWork::signal(const std::atomic<uint32_t> &word) {
    Status s = domain_.ops().signal(queue_, page_->mem(), offset(word), 1);
    if (s == DTRAIN_OK) domain_.config().waker->call_after(domain_.ops(), queue_);
    return s;
}

Status StreamWork::enqueue(std::span<const Copy> inputs, std::span<const Copy> results) {
    const dtrain_dv_ops_t &ops = domain_.ops();
    Quiet::begin_wait();
    waits_ = true;
    set_error_text("");
    Status s = copy(inputs);
    if (s == DTRAIN_OK) s = signal(words_->ready);
    if (s == DTRAIN_OK) s = ops.hold(queue_, page_->mem(), offset(words_->done), 1);
    if (s == DTRAIN_OK) s = copy(results);
    if (s != DTRAIN_OK) {
        release();
        explain(s, domain_.name().c_str(), "stream");
    }
    const std::string text = error_text();        // of the first failure
    const Status last = signal(words_->finished); // for what has been submitted
    if (s != DTRAIN_OK) return set_error_text(text.c_str()), s;
    if (last == DTRAIN_OK) return last;
    release();
    return explain(last, domain_.name().c_str(), "stream");
}

Status StreamWork::check() {
    set_error_text("");
    const Status s = domain_.check();
    return s == DTRAIN_OK ? s : explain(s, domain_.name().c_str(), "stream");
}

} // namespace dtrain::accel
