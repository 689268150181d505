// DtrainJoin: for a rank without more data. Until all ranks have run it, this one contributes zeros
// to the others' named all-reduces, and answers their other ops on the communicator, which fail at
// once instead of waiting for it.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include "tensorflow/op.h"

namespace dtrain::tensorflow {

namespace {

constexpr int64_t slice_ns = 50'000'000; // between two looks at the queue

dtrain_op_params_t without_timeout() {
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = -1;
    return params;
}

bool failed(dtrain_request_t *request) { return dtrain_request_test(request) < 0; }

// Waits for a call on comm, and breaks comm if the queue's request fails first: then the ranks
// that this call waits for may never come.
dtrain_status_t wait(dtrain_comm_t *comm, dtrain_request_t *request, dtrain_request_t *queue) {
    dtrain_status_t status = DTRAIN_OK;
    while ((status = dtrain_request_wait(request, slice_ns)) == DTRAIN_IN_PROGRESS)
        if (failed(queue)) (void)dtrain_comm_abort(comm, "join() has failed on this rank");
    dtrain_request_free(request);
    return status;
}

// Returns when all ranks are here, or once the communicator is broken. The others' ops have that
// error then, and all-reduces by the queue may go on.
void answer(dtrain_comm_t *comm, dtrain_request_t *queue) {
    for (;;) {
        Agreement agreement(comm, Agreement::joining);
        dtrain_request_t *request = nullptr;
        if (agreement.begin(without_timeout(), &request) < 0 || wait(comm, request, queue) < 0)
            return;
        dtrain_op_params_t params; // the other ranks are here: this has a limit
        DTRAIN_INIT(&params);
        std::string difference;
        if (agreement.same() || agreement.compare(params, difference) < 0) return;
    }
}

class Join {
  public:
    explicit Join(Construction &construction)
        : target_(construction), queue_(entry_of(construction.text("queue"))) {}

    void run(Call &call) {
        const Use use(target_.entry), of_queue(queue_);
        const std::string what = "join";
        if (!check_kind(call, target_, use, Kind::communicator, what) ||
            !check_object(call, queue_, of_queue, Kind::gradients, what))
            return;
        Tensor last;
        if (!call.output(0, *find_dtype(DTRAIN_I32), {}, last)) return;
        const dtrain_op_params_t params = without_timeout();
        dtrain_request_t *request = nullptr;
        dtrain_status_t status = dtrain_gradients_join(
            static_cast<dtrain_gradients_t *>(of_queue->handle), &params, nullptr, &request);
        if (status < 0) {
            call.fail(status, what);
            return;
        }
        answer(static_cast<dtrain_comm_t *>(use->handle), request);
        status = dtrain_request_wait(request, -1);
        dtrain_event_t event;
        if (status < 0)
            call.fail(status, what, request);
        else if (dtrain_request_result(request, &event) >= 0)
            *static_cast<int32_t *>(last.data) = event.peer;
        dtrain_request_free(request);
    }

  private:
    const Target target_;
    Entry &queue_;
};

} // namespace

Definition join() {
    return define<Join>("DtrainJoin", {}, {"last: int32"}, {"queue: string"}, unknown_shapes);
}

} // namespace dtrain::tensorflow
