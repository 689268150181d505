// What becomes of a request whose operation has timed out: it is withdrawn from the network, in
// whatever state it is, so that the operation ends.
// SPDX-License-Identifier: Apache-2.0
#include "ps/client/client_table.h"

#include "check.h"

#include <vector>

using namespace dtrain;
using namespace dtrain::ps;

namespace {

// The test plays the network and the server.
struct Job : Wire {
    Job() : client({.retry_ns = 1 * second}, *this) {
        TableParams params;
        params.length = 4;
        params.dtype = DTRAIN_F32;
        params.consistency = DTRAIN_ASYNC;
        assert_int_equal(client.open("t", params, transfer.table), DTRAIN_OK);
        transfer.kind = RequestKind::push;
        transfer.range = {0, 4};
        transfer.send = values;
        transfer.done = [](Transfer *self) { self->owner = self; };
        client.start(transfer, 1);
        assert_int_equal(sent.size(), 1);
    }
    Status send(uint32_t, Outgoing &request) override {
        sent.push_back(&request);
        return DTRAIN_OK;
    }
    void withdraw(uint32_t, Outgoing &request) override { withdrawn.push_back(&request); }

    void answer() {
        Outgoing &request = *sent.front();
        ResponseHeader header;
        header.kind = request.header.kind;
        header.sequence = request.header.sequence;
        assert_true(client.on_response(request, header, 0, 2));
    }
    bool done() const { return transfer.owner == &transfer; }

    const float values[4] = {};
    std::vector<Outgoing *> sent, withdrawn;
    Client client;
    Transfer transfer;
};

void one_without_an_answer_is_canceled(void **) {
    Job job;
    job.client.abandon(job.transfer, DTRAIN_ERR_TIMEOUT, "timed out");
    assert_int_equal(job.withdrawn.size(), 1);
    assert_false(job.done());
    job.client.on_withdrawn(*job.withdrawn[0], 3);
    assert_true(job.done());
    assert_int_equal(job.transfer.status, DTRAIN_ERR_TIMEOUT);
    assert_int_equal(job.sent.size(), 2);
    assert_int_equal(job.sent[1]->header.kind, RequestKind::cancel);
}

void one_with_an_answer_gives_its_memory_back(void **) {
    Job job;
    job.answer();
    assert_false(job.done()); // the network still has the values
    job.client.abandon(job.transfer, DTRAIN_ERR_TIMEOUT, "timed out");
    assert_int_equal(job.withdrawn.size(), 1);
    assert_false(job.done());
    job.client.abandon(job.transfer, DTRAIN_ERR_TIMEOUT, "timed out"); // the same once more
    assert_int_equal(job.withdrawn.size(), 1);
    job.client.on_withdrawn(*job.withdrawn[0], 3);
    assert_true(job.done());
    assert_int_equal(job.sent.size(), 1); // there is nothing to cancel
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(one_without_an_answer_is_canceled),
        cmocka_unit_test(one_with_an_answer_gives_its_memory_back),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
