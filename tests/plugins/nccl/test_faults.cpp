// Peers that die, stop, or have no business here: every call ends with an error that names the peer
// and the cause, or with the right result.
// SPDX-License-Identifier: Apache-2.0
#include "nccl/messages.h"
#include "sides.h"

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>

using namespace dtrain::test;
namespace nccl = dtrain::nccl;

namespace {

constexpr size_t long_bytes = 8 << 20; // waits for its receive

// The first failure of connect().
Result connect_failure(Side &side, NcclHandle &handle) {
    void *comm = nullptr;
    Result result = Result::success;
    poll_until([&] {
        result = side.net->connect(0, handle, comm);
        assert_null(comm);
        return result != Result::success;
    });
    return result;
}

void give_pid(Side &side) {
    const pid_t pid = getpid();
    give(side.fd, &pid, sizeof pid);
}
pid_t take_pid(Side &side) {
    pid_t pid = 0;
    take(side.fd, &pid, sizeof pid);
    return pid;
}
// Waits without polling the plugin.
void sleep_forever() {
    for (;;) pause();
}

void a_killed_sender(void **) {
    two_sides(
        {.killed = Setup::sender},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            const pid_t pid = take_pid(side);
            Bytes a(100), b(100), c(100);
            void *pending = end.receive({&a, &b}, {1, 2}), *other = end.receive({&c}, {3});
            kill(pid, SIGKILL);
            assert_true(end.await_failure(pending) == Result::remote_error);
            assert_true(end.await_failure(other) == Result::remote_error);
            assert_true(has_said("receiving from "));
            assert_true(has_said((":" + std::to_string(pid)).c_str()));
            end.close();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            give_pid(side);
            sleep_forever();
        });
}

void a_killed_receiver(void **) {
    two_sides(
        {.killed = Setup::receiver},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            give_pid(side);
            sleep_forever();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            Bytes bytes(long_bytes);
            void *pending = end.send(bytes, 0);
            kill(take_pid(side), SIGKILL);
            assert_true(end.await_failure(pending) == Result::remote_error);
            void *request = &bytes;
            assert_true(side.net->send(end.comm, bytes.data(), 1, 0, nullptr, request) ==
                        Result::remote_error);
            assert_null(request);
            end.close();
            side.finish();
        });
}

// A worker of a data loader outlives the sender; it must not keep the connection open.
void a_killed_sender_with_a_forked_child(void **) {
    two_sides(
        {.killed = Setup::sender},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            const pid_t pid = take_pid(side), worker = take_pid(side);
            Bytes into(100);
            void *pending = end.receive({&into}, {1});
            kill(pid, SIGKILL);
            assert_true(end.await_failure(pending) == Result::remote_error);
            assert_int_equal(kill(worker, SIGKILL), 0); // it was alive all the time
            end.close();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            give_pid(side);
            if (fork() == 0) {
                alarm(unsigned(ample_s));
                give_pid(side);
            }
            sleep_forever();
        });
}

// It is not dead: the calls return at once, and everything arrives when it runs again.
void a_stopped_receiver(void **) {
    two_sides(
        {},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            give_pid(side);
            Bytes into(long_bytes);
            end.await(end.receive({&into}, {0}));
            assert_true(into == pattern(long_bytes, 3));
            side.meet();
            end.close();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            const pid_t pid = take_pid(side);
            kill(pid, SIGSTOP);
            // Far more than the sockets hold.
            Bytes bytes = pattern(long_bytes, 3);
            void *request = end.send(bytes, 0);
            for (int i = 0; i < 2000; i++) {
                int done = 0;
                assert_true(side.net->test(request, done, nullptr) == Result::success);
                assert_int_equal(done, 0);
            }
            kill(pid, SIGCONT);
            end.await(request);
            side.meet();
            end.close();
            side.finish();
        });
}

// Each has sent its hello, and does nothing more.
void silent_guests_keep_nobody_out(void **) {
    two_sides(
        {.settings = {{"DTRAIN_JOIN_TIMEOUT", "60s"}}},
        [](Side &side) {
            NcclHandle handle{};
            void *listener = nullptr;
            assert_true(side.net->listen(0, handle, listener) == Result::success);
            give(side.fd, handle.data(), handle.size());
            side.meet();
            const double begin = now_s();
            End end(*side.net, false);
            side.accept_from(end, listener);
            assert_true(now_s() - begin < 30);
            Bytes into(100);
            end.await(end.receive({&into}, {1}));
            assert_true(into == pattern(100, 7));
            side.meet();
            assert_true(side.net->close_listen(listener) == Result::success);
            end.close();
            side.finish();
        },
        [](Side &side) {
            constexpr size_t silent = 20;
            constexpr int polls = 200; // each may move what all others wait for
            const NcclHandle handle = side.take_handle();
            std::vector<NcclHandle> handles(silent, handle);
            void *comm = nullptr;
            for (int i = 0; i < polls; i++)
                for (NcclHandle &one : handles) {
                    assert_true(side.net->connect(0, one, comm) == Result::success);
                    assert_null(comm);
                }
            side.meet();
            NcclHandle own = handle;
            End end(*side.net, true);
            poll_until([&] {
                assert_true(side.net->connect(0, own, end.comm) == Result::success);
                return end.comm != nullptr;
            });
            Bytes bytes = pattern(100, 7);
            end.await(end.send(bytes, 1));
            side.meet();
            end.close();
            side.finish();
        });
}

// Nothing of them stays that would take up room: each leaves a message that is not received.
void many_connections_after_each_other(void **) {
    constexpr int rounds = 300;
    constexpr size_t length = 4000; // kept by the receiver's device
    two_sides(
        {},
        [](Side &side) {
            for (int i = 0; i < rounds; i++) {
                End end(*side.net, false);
                side.accept(end);
                Bytes into(length);
                end.await(end.receive({&into}, {1}));
            }
            side.meet();
            side.finish();
        },
        [](Side &side) {
            for (int i = 0; i < rounds; i++) {
                End end(*side.net, true);
                side.connect(end);
                Bytes left(length), wanted(length);
                end.await(end.send(left, 0));
                void *request = nullptr;
                // The receiver may close as soon as it has this one.
                assert_true(side.net->send(end.comm, wanted.data(), length, 1, nullptr, request) ==
                            Result::success);
                end.await(request);
            }
            side.meet();
            side.finish();
        });
}

void a_message_that_is_too_long(void **) {
    two_sides(
        {},
        [](Side &side) {
            End end(*side.net, false);
            side.accept(end);
            Bytes into(10);
            assert_true(end.await_failure(end.receive({&into}, {5})) == Result::invalid_argument);
            assert_true(has_said("of tag 5 has 11 bytes, but the buffer has 10"));
            side.meet();
            end.close();
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            Bytes bytes(11);
            end.await(end.send(bytes, 5));
            side.meet();
            end.close();
            side.finish();
        });
}

// Polls accept() until the other side says that it is through; nobody may get in meanwhile.
void accept_nobody(Side &side, void *listener) {
    poll_until([&] {
        void *comm = nullptr;
        assert_true(side.net->accept(listener, comm) == Result::success);
        assert_null(comm);
        char token;
        return recv(side.fd, &token, 1, MSG_DONTWAIT) == 1;
    });
}
void be_through(Side &side) {
    char token = 'x';
    give(side.fd, &token, 1);
}
// The listener still works: this process connects to itself.
void connect_to_itself(Side &side, void *listener, NcclHandle handle) {
    End receiver(*side.net, false), sender(*side.net, true);
    poll_until([&] {
        if (sender.comm == nullptr)
            assert_true(side.net->connect(0, handle, sender.comm) == Result::success);
        if (receiver.comm == nullptr)
            assert_true(side.net->accept(listener, receiver.comm) == Result::success);
        return sender.comm != nullptr && receiver.comm != nullptr;
    });
    Bytes into(1000), bytes = pattern(1000, 4);
    void *request = receiver.receive({&into}, {0});
    sender.await(sender.send(bytes, 0));
    receiver.await(request);
    assert_true(into == bytes);
}

// The receiver of a test with a bad sender.
void withstand(Side &side) {
    NcclHandle handle{};
    void *listener = nullptr;
    assert_true(side.net->listen(0, handle, listener) == Result::success);
    give(side.fd, handle.data(), handle.size());
    accept_nobody(side, listener);
    connect_to_itself(side, listener, handle);
    assert_true(side.net->close_listen(listener) == Result::success);
    side.finish();
}

struct Stranger {
    Settings both, sender;
    const char *cause;
};
const Stranger strangers[] = {
    {{{"DTRAIN_SECRET", "right"}}, {{"DTRAIN_SECRET", "wrong"}}, "different secrets"},
    {{{"DTRAIN_SECRET", "right"}},
     {{"DTRAIN_SECRET", ""}},
     "only one of the two sides has a secret"},
    {{}, {{"DTRAIN_SECRET", "any"}}, "only one of the two sides has a secret"},
};

void strangers_are_refused(void **) {
    for (const Stranger &stranger : strangers)
        two_sides({.settings = stranger.both, .sender_settings = stranger.sender}, withstand,
                  [&](Side &side) {
                      NcclHandle handle = side.take_handle();
                      assert_true(connect_failure(side, handle) == Result::remote_error);
                      assert_true(has_said(stranger.cause));
                      be_through(side);
                      side.finish();
                  });
}

void another_transport_is_refused(void **) {
    if (access(PLUGIN_FOLDER "/libdtrain_transport_ofi.so", R_OK) != 0) {
        print_message("skipped: the transport ofi is not built\n");
        skip();
    }
    two_sides(
        {.sender_settings = {{"DTRAIN_TRANSPORTS", "ofi"}, {"DTRAIN_OFI_PROVIDER", "tcp;ofi_rxm"}}},
        withstand, [](Side &side) {
            NcclHandle handle = side.take_handle();
            assert_true(connect_failure(side, handle) == Result::system_error);
            assert_true(has_said("it uses the transport tcp, the other side ofi"));
            be_through(side);
            side.finish();
        });
}

// What comes to the port has not even the plugin.
void garbage_on_the_port(void **) {
    two_sides({}, withstand, [](Side &side) {
        NcclHandle handle = side.take_handle();
        nccl::Handle read;
        assert_int_equal(read.decode(handle.data()), DTRAIN_OK);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        memcpy(&to.sin_port, read.address.data() + 24, 2); // as a tcp device writes its address
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (uint64_t seed = 0; seed < 20; seed++) {
            const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            assert_int_equal(connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to), 0);
            Bytes noise = pattern(1 + seed * 100, seed);
            if (seed % 3 == 0)
                memcpy(noise.data(), "DTRN\x01\x00\x00\x00", std::min<size_t>(noise.size(), 8));
            send(fd, noise.data(), noise.size(), MSG_NOSIGNAL);
            if (seed % 2) shutdown(fd, SHUT_WR);
            close(fd);
        }
        be_through(side);
        side.finish();
    });
}

void wrong_handles(void **) {
    two_sides(
        {.settings = {{"DTRAIN_JOIN_TIMEOUT", "500ms"}}},
        [](Side &side) {
            // A listener that is closed again, in a process that lives on.
            NcclHandle handle{};
            void *listener = nullptr;
            assert_true(side.net->listen(0, handle, listener) == Result::success);
            assert_true(side.net->close_listen(listener) == Result::success);
            give(side.fd, handle.data(), handle.size());
            assert_true(side.net->listen(0, handle, listener) == Result::success);
            poll_until([&] { // keeps the device going; the limit of accept() passes
                void *comm = nullptr;
                (void)side.net->accept(listener, comm);
                assert_null(comm);
                char token;
                return recv(side.fd, &token, 1, MSG_DONTWAIT) == 1;
            });
            assert_true(has_said("no rank has connected within"));
            assert_true(side.net->close_listen(listener) == Result::success);
            side.finish();
        },
        [](Side &side) {
            NcclHandle closed = side.take_handle(), dead = closed;
            assert_true(connect_failure(side, closed) == Result::remote_error);
            assert_true(has_said("option join.timeout"));
            // Nobody listens at this port.
            nccl::Handle read;
            assert_int_equal(read.decode(dead.data()), DTRAIN_OK);
            read.address[24] = 0, read.address[25] = 1;
            assert_int_equal(read.encode(dead.data()), DTRAIN_OK);
            assert_true(connect_failure(side, dead) == Result::remote_error);
            for (uint64_t seed = 0; seed < 200; seed++) {
                NcclHandle noise;
                const Bytes bytes = pattern(noise.size(), seed);
                std::copy(bytes.begin(), bytes.end(), noise.begin());
                if (seed % 2) memcpy(noise.data(), "dtn\x01", 4);
                void *comm = nullptr;
                assert_true(side.net->connect(0, noise, comm) == Result::invalid_argument);
                assert_null(comm);
            }
            be_through(side);
            side.finish();
        });
}

void wrong_arguments(void **) {
    two_sides(
        {},
        [](Side &side) {
            NcclHandle handle{};
            void *listener = nullptr, *request = nullptr, *comm = nullptr;
            assert_true(side.net->listen(-1, handle, listener) == Result::invalid_argument);
            assert_true(side.net->connect(99, handle, comm) == Result::invalid_argument);
            assert_true(side.net->accept(nullptr, comm) == Result::invalid_argument);
            int done = 0;
            assert_true(side.net->test(nullptr, done, nullptr) == Result::invalid_argument);
            End end(*side.net, false);
            side.accept(end);
            std::vector<void *> data(20, &done);
            std::vector<size_t> sizes(20, 1);
            std::vector<int> tags(20);
            for (const int count : {-1, 0, nccl::most_receives + 1, 20})
                assert_true(side.net->receive(end.comm, count, data.data(), sizes.data(),
                                              tags.data(), nullptr,
                                              request) == Result::invalid_argument);
            assert_true(side.net->send(end.comm, &done, 1, 0, nullptr, request) ==
                        Result::invalid_argument);
            side.meet();
            end.close();
            assert_true(side.net->close_receive(nullptr) == Result::success);
            side.finish();
        },
        [](Side &side) {
            End end(*side.net, true);
            side.connect(end);
            void *request = nullptr;
            assert_true(side.net->send(end.comm, nullptr, 1, 0, nullptr, request) ==
                        Result::invalid_argument);
            assert_true(side.net->send(end.comm, &request, size_t{1} << 40, 0, nullptr, request) ==
                        Result::invalid_argument);
            side.meet();
            end.close();
            side.finish();
        });
}

// A transport that does not exist, and options that are wrong: init() says so, NCCL takes another
// net.
void wrong_options(void **) {
    const std::pair<const char *, const char *> wrong[] = {{"DTRAIN_TRANSPORTS", "shm"},
                                                           {"DTRAIN_TRANSPORTS", "tpc"},
                                                           {"DTRAIN_JOIN_TIMEOUT", "soon"},
                                                           {"DTRAIN_SECRET_FILE", "/nowhere"}};
    for (const auto &option : wrong) {
        Child child([&](int) {
            setenv(option.first, option.second, 1);
            assert_true(load(newest)->init() != Result::success);
            assert_true(has_said(option.second));
        });
        child.join();
    }
}

// A process may close everything and begin again.
void again_after_the_last_context(void **) {
    Child child([](int) {
        for (int round = 0; round < 3; round++) {
            Side side{load(11), -1};
            assert_true(side.net->init() == Result::success);
            NcclHandle handle{};
            void *listener = nullptr;
            assert_true(side.net->listen(0, handle, listener) == Result::success);
            connect_to_itself(side, listener, handle);
            assert_true(side.net->close_listen(listener) == Result::success);
            side.finish();
        }
    });
    child.join();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_sender),
        cmocka_unit_test(a_killed_sender_with_a_forked_child),
        cmocka_unit_test(a_killed_receiver),
        cmocka_unit_test(a_stopped_receiver),
        cmocka_unit_test(silent_guests_keep_nobody_out),
        cmocka_unit_test(many_connections_after_each_other),
        cmocka_unit_test(a_message_that_is_too_long),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(another_transport_is_refused),
        cmocka_unit_test(garbage_on_the_port),
        cmocka_unit_test(wrong_handles),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(again_after_the_last_context),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
