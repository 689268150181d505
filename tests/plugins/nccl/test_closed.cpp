// A side that closes while the other one goes on; both processes live on.
// SPDX-License-Identifier: Apache-2.0
#include "sides.h"

using namespace dtrain::test;

namespace {

constexpr size_t long_bytes = 8 << 20; // waits for its receive

// What is in flight when a connection closes does not touch its memory afterwards, and does not
// harm other connections of the same devices.
void closing_with_requests_in_flight(void **) {
    two_sides(
        {},
        [](Side &side) {
            End first(*side.net, false), second(*side.net, false);
            side.accept(first);
            side.accept(second);
            {
                Bytes a(1000), b(long_bytes);
                first.receive({&a}, {1});
                first.receive({&b}, {2});
                side.meet(); // sends to who has closed are errors
                first.close();
            }
            side.meet();
            Bytes into(long_bytes);
            second.await(second.receive({&into}, {0}));
            assert_true(into == pattern(long_bytes, 9));
            side.meet();
            second.close();
            side.finish();
        },
        [](Side &side) {
            End first(*side.net, true), second(*side.net, true);
            side.connect(first);
            side.connect(second);
            {
                Bytes a = pattern(long_bytes, 1), b = pattern(long_bytes, 2);
                first.send(a, 7); // nobody wants them
                first.send(b, 8);
                side.meet();
                first.close();
            }
            side.meet();
            Bytes bytes = pattern(long_bytes, 9);
            second.await(second.send(bytes, 0));
            side.meet();
            second.close();
            side.finish();
        });
}

// The other process lives on, as after ncclCommAbort(): the end of the connection is what tells it.
void a_closed_receiver(void **) {
    two_sides(
        {},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            end.close();
            side.meet();
            side.meet();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            side.meet(); // it is closed
            Bytes bytes(long_bytes);
            void *request = nullptr; // it may already be refused
            const Result result =
                side.net->send(end.comm, bytes.data(), bytes.size(), 0, nullptr, request);
            if (request != nullptr)
                assert_true(end.await_failure(request) == Result::remote_error);
            else
                assert_true(result == Result::remote_error);
            assert_true(has_said("the other side has closed the connection"));
            end.close();
            side.meet();
            side.finish();
        });
}

// What is under way when the receiver closes may be dropped, which ends it well for the sender, as
// its buffer is free; what is sent after that fails.
void a_receiver_closed_under_a_message(void **) {
    two_sides(
        {},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            side.meet();
            end.close();
            side.meet();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            Bytes bytes(long_bytes);
            void *request = end.send(bytes, 0);
            side.meet(); // now it is closed
            poll_until([&] {
                int done = 0;
                Result result = Result::success;
                if (request != nullptr)
                    result = side.net->test(request, done, nullptr);
                else
                    result =
                        side.net->send(end.comm, bytes.data(), bytes.size(), 0, nullptr, request);
                if (done != 0) request = nullptr;
                assert_true(result == Result::success || result == Result::remote_error);
                return result == Result::remote_error;
            });
            assert_true(has_said("the other side has closed the connection"));
            end.close();
            side.meet();
            side.finish();
        });
}

void a_closed_sender(void **) {
    two_sides(
        {},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            Bytes first(70'000), second(1);
            void *request = end.receive({&first}, {0});
            assert_true(end.await_failure(end.receive({&second}, {0})) == Result::remote_error);
            assert_int_equal(end.await(request)[0], first.size()); // was sent before
            assert_true(first == pattern(first.size(), 1));
            assert_true(has_said("the other side has closed the connection"));
            side.meet();
            end.close();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            Bytes bytes = pattern(70'000, 1);
            end.await(end.send(bytes, 0));
            end.close();
            side.meet();
            side.finish();
        });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(closing_with_requests_in_flight),
        cmocka_unit_test(a_closed_receiver),
        cmocka_unit_test(a_receiver_closed_under_a_message),
        cmocka_unit_test(a_closed_sender),
    };
    return cmocka_run_group_tests_name("closed", tests, nullptr, nullptr);
}
