// One control connection: what it keeps.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "cluster/connection.h"
#include "wire/frame.h"

#include <malloc.h>
#include <sys/socket.h>

using namespace dtrain;
using namespace dtrain::cluster;

namespace {

constexpr size_t large = 60 << 10;

// One for each member of a job: a roster that has passed must not stay in any of them.
void what_has_passed_is_not_kept(void **) {
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    const std::string secret;
    Connection to(Fd(fds[0]), wire::Handshake::Side::dialler, secret, 1, 0, INT64_MAX);
    Connection from(Fd(fds[1]), wire::Handshake::Side::listener, secret, 0,
                    wire::Handshake::anybody, INT64_MAX);
    std::vector<wire::Message> messages;
    assert_int_equal(to.ready_to_write(), DTRAIN_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(from.ready_to_read(messages), DTRAIN_OK);
        assert_int_equal(to.ready_to_read(messages), DTRAIN_OK);
    }
    assert_true(to.state() == Connection::State::open && from.state() == Connection::State::open);

    std::vector<uint8_t> frame;
    wire::append_frame(wire::Relay{0, 1, 0, std::vector<uint8_t>(large)}, frame);
    const size_t before = mallinfo2().uordblks; // zero under sanitizers
    assert_int_equal(to.send(frame), DTRAIN_OK);
    while (messages.empty()) assert_int_equal(from.ready_to_read(messages), DTRAIN_OK);
    assert_int_equal(std::get<wire::Relay>(messages.front()).bytes.size(), large);
    messages = std::vector<wire::Message>();
    assert_false(to.wants_to_write());
    assert_true(mallinfo2().uordblks < before + large / 4);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(what_has_passed_is_not_kept)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
