// One control connection: what it keeps, and how it ends.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "cluster/join/connection.h"
#include "wire/frame.h"

#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace dtrain;
using namespace dtrain::cluster;

namespace {

constexpr size_t large = 60 << 10;

// Two ends of a control connection, dialled by a.
struct Ends {
    Ends() {
        const Fd listener(socket(AF_INET, SOCK_STREAM, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        auto *generic = reinterpret_cast<sockaddr *>(&address);
        assert_int_equal(bind(listener.get(), generic, length), 0);
        assert_int_equal(listen(listener.get(), 1), 0);
        assert_int_equal(getsockname(listener.get(), generic, &length), 0);
        Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
        connect(fd.get(), generic, length);
        Fd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
        prepare_accepted(fd.get());
        prepare_accepted(accepted.get());
        using Side = wire::Handshake::Side;
        a = std::make_unique<Connection>(std::move(fd), Side::dialler, own, 1, 0, INT64_MAX);
        b = std::make_unique<Connection>(std::move(accepted), Side::listener, own, 0,
                                         wire::Handshake::anybody, INT64_MAX);
        assert_int_equal(a->ready_to_write(), DTRAIN_OK);
        while (a->state() != Connection::State::open || b->state() != Connection::State::open) {
            assert_int_equal(b->ready_to_read(messages), DTRAIN_OK);
            assert_int_equal(a->ready_to_read(messages), DTRAIN_OK);
        }
    }
    const wire::Credentials own;
    std::unique_ptr<Connection> a, b;
    std::vector<wire::Message> messages;
};

std::vector<uint8_t> frame_of(size_t bytes) {
    std::vector<uint8_t> frame;
    wire::append_frame(wire::Relay{0, 1, 0, std::vector<uint8_t>(bytes)}, frame);
    return frame;
}

// One for each member of a job: a roster that has passed must not stay in any of them.
void what_has_passed_is_not_kept(void **) {
    Ends ends;
    const std::vector<uint8_t> frame = frame_of(large);
    const size_t before = mallinfo2().uordblks; // zero under sanitizers
    assert_int_equal(ends.a->send(frame), DTRAIN_OK);
    while (ends.messages.empty()) {
        if (ends.a->wants_to_write()) assert_int_equal(ends.a->ready_to_write(), DTRAIN_OK);
        assert_int_equal(ends.b->ready_to_read(ends.messages), DTRAIN_OK);
    }
    assert_int_equal(std::get<wire::Relay>(ends.messages.front()).bytes.size(), large);
    ends.messages = std::vector<wire::Message>();
    assert_false(ends.a->wants_to_write());
    assert_true(mallinfo2().uordblks < before + large / 4);
}

// A socket that closes with bytes unread resets the connection, and its last word may be lost.
void who_winds_up_ends_in_order(void **) {
    Ends ends;
    const std::vector<uint8_t> frame = frame_of(100);
    assert_int_equal(ends.b->send(frame), DTRAIN_OK); // nobody will read it
    assert_int_equal(ends.a->send(frame), DTRAIN_OK); // the last word
    assert_false(ends.a->wind_up());
    ends.a.reset();
    uint8_t got[1000];
    const ssize_t n = recv(ends.b->fd(), got, sizeof got, 0);
    assert_int_equal(n, frame.size());
    assert_int_equal(recv(ends.b->fd(), got, sizeof got, 0), 0); // not ECONNRESET
}

void both_may_wind_up_at_once(void **) {
    Ends ends;
    assert_false(ends.a->wind_up()); // the peer is still there
    assert_true(ends.b->wind_up());
    assert_true(ends.a->wind_up());
}

// And reads on, a bounded amount at a time.
void a_peer_that_goes_on_sending_has_not_ended(void **) {
    Ends ends;
    const std::vector<uint8_t> frame = frame_of(large);
    for (int i = 0; i < 1000; i++) {
        while (!ends.b->wants_to_write()) assert_int_equal(ends.b->send(frame), DTRAIN_OK);
        assert_false(ends.a->wind_up());
        assert_int_equal(ends.b->ready_to_write(), DTRAIN_OK);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(what_has_passed_is_not_kept),
        cmocka_unit_test(who_winds_up_ends_in_order),
        cmocka_unit_test(both_may_wind_up_at_once),
        cmocka_unit_test(a_peer_that_goes_on_sending_has_not_ended),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
