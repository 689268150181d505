// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/joined.h"

namespace dtrain::tensorflow {

namespace {

dtrain_op_params_t without_timeout() {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = -1;
    return params;
}

} // namespace

Joined::~Joined() {
    for (dtrain_request_t *request : {answer_, request_}) {
        if (request == nullptr) continue;
        (void)dtrain_request_wait(request, -1);
        dtrain_request_free(request);
    }
}

dtrain_status_t Joined::start() {
    const dtrain_op_params_t params = without_timeout();
    const dtrain_status_t status = dtrain_gradients_join(
        static_cast<dtrain_gradients_t *>(queue_->handle), &params, nullptr, &request_);
    if (status >= 0) agree();
    return status;
}

dtrain_status_t Joined::status() const {
    return request_ == nullptr ? DTRAIN_OK : dtrain_request_test(request_);
}

void Joined::agree() {
    agreement_.emplace(handle(), Agreement::joining);
    comparing_ = false;
    if (agreement_->begin(without_timeout(), &answer_) < 0) answer_ = nullptr;
}

// A broken communicator ends this. The others' ops have that error then, and all-reduces by the
// queue may go on.
void Joined::step(int64_t wait_ns) {
    if (answer_ == nullptr) {
        if (request_ != nullptr) (void)dtrain_request_wait(request_, wait_ns);
        return;
    }
    const dtrain_status_t status = dtrain_request_wait(answer_, wait_ns);
    if (status == DTRAIN_IN_PROGRESS) {
        if (this->status() < 0) abort(); // the ranks that it waits for may never come
        return;
    }
    dtrain_request_free(answer_);
    answer_ = nullptr;
    if (status < 0) return;
    if (comparing_) {
        agree();
    } else if (!agreement_->same()) {
        comparing_ = true;
        dtrain_op_params_t params; // the others are there: this has a limit
        DTRAIN_INIT(&params);
        if (agreement_->begin_comparison(params, &answer_) < 0) answer_ = nullptr;
    }
}

void Joined::abort() {
    if (aborted_) return;
    aborted_ = true;
    (void)dtrain_comm_abort(handle(), "join() has failed on this rank");
}

} // namespace dtrain::tensorflow
