// dtrain.hpp: one class for each status, what callbacks throw, durations, handles in any order, no
// memory.
// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <atomic>
#include <new>

using namespace dtrain;
using namespace std::chrono_literals;

namespace {
thread_local bool counted;
thread_local int allocations;
} // namespace

[[gnu::noinline]] void *operator new(size_t size) {
    if (counted) allocations++;
    if (void *memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {

void test_every_status_has_a_class(void **) {
#define DTRAIN_X(code, number, about)                                                              \
    if ((number) < 0) {                                                                            \
        bool own = false;                                                                          \
        detail::with_error(number, "why", 3, [&](auto &&error) {                                   \
            own = !std::is_same<std::decay_t<decltype(error)>, Error>::value &&                    \
                  error.status() == (number) && error.rank() == 3 &&                               \
                  std::strcmp(error.name(), "DTRAIN_" #code) == 0;                                 \
        });                                                                                        \
        REQUIRE(own);                                                                              \
    }
    DTRAIN_STATUS_MAP(DTRAIN_X)
#undef DTRAIN_X
    try {
        detail::throw_error(-12345, "of a newer library");
    } catch (const Error &error) {
        REQUIRE(error.status() == -12345);
    }
}

void test_texts(void **) {
    THROWS(NotFoundError, "op.timeout", Options().set("op.timeuot", "1s"));
    THROWS(InvalidError, "op.timeout", Options().set("op.timeout", "soon"));
}

void test_timeout(void **) {
    run(2, 0, [](const Context &, const Communicator &comm) {
        float x = 0;
        if (comm.rank() == 0)
            THROWS(TimeoutError, "", comm.with(OpParams().timeout(50ms)).recv(Output(&x, 1), 1));
        const Request request = comm.start().recv(Output(&x, 1), 1 - comm.rank(), 9);
        REQUIRE(!request.done() && !request.wait_for(1ms));
        THROWS(StateError, "", request.result());
        request.cancel();
        THROWS(CanceledError, "", request.wait());
        comm.barrier(); // none leaves before
    });
}

void test_lost_peer_is_named(void **) {
    run(2, 0, [](const Context &, const Communicator &comm) {
        if (comm.rank() == 1) {
            comm.abort("enough");
            THROWS(AbortedError, "enough", comm.check());
            return;
        }
        THROWS(AbortedError, "enough", comm.barrier());
    });
}

void test_those_who_are_left_go_on(void **) {
    run(3, 0, [](const Context &, const Communicator &joined) {
        const std::vector<float> ones{1};
        std::vector<float> sum(1);
        joined.allreduce(ones, sum);
        if (joined.rank() == 1) return; // gone
        bool lost = false;
        try {
            joined.barrier();
        } catch (const PeerError &error) {
            lost = error.rank() == 1;
        }
        REQUIRE(lost);
        REQUIRE((joined.failed() == std::vector<int32_t>{1}));
        const Communicator left = joined.shrink();
        REQUIRE(left.size() == 2 && left.rank() == (joined.rank() == 2 ? 1 : 0));
        left.allreduce(ones, sum);
        REQUIRE(sum[0] == 2 && left.failed().empty());
        const std::vector<int32_t> list{2, 0};
        const Communicator group = joined.create_group(list, 1, 60s); // of the broken one
        REQUIRE(group.rank() == (joined.rank() == 2 ? 0 : 1));
        group.allreduce(ones, sum);
        REQUIRE(sum[0] == 2);
        THROWS(PeerError, "create_group: rank 1",
               joined.create_group(std::vector<int32_t>{0, 1, 2}));
        group.barrier(); // neither leaves before
    });
}

void test_exceptions_of_callbacks(void **) {
    const Context context(test_options());
    bool seen = false;
    try {
        context.join("oob", JoinParams().size(2).rank(0).timeout(20s).allgather(
                                [](Span<const std::byte>, Span<std::byte>) {
                                    throw std::out_of_range("mine");
                                }));
    } catch (const Error &error) {
        try {
            std::rethrow_if_nested(error);
        } catch (const std::out_of_range &inner) {
            seen = std::strcmp(inner.what(), "mine") == 0;
        }
    }
    REQUIRE(seen);
    seen = false;
    const Communicator comm = context.join("env", JoinParams().size(1));
    try {
        comm.table("placed",
                   TableParams().length(1000).place([](uint64_t, uint64_t, uint32_t) -> uint32_t {
                       throw std::out_of_range("nowhere");
                   }));
    } catch (const InvalidError &error) {
        try {
            std::rethrow_if_nested(error);
        } catch (const std::out_of_range &) {
            seen = true;
        }
    }
    REQUIRE(seen);
}

void test_log(void **) {
    std::atomic<int> lines{0};
    const Context context(test_options().set("explain", "yes"));
    context.set_log([&](LogLevel, const char *line) { lines += line != nullptr; });
    std::vector<float> x(8);
    context.join("env", JoinParams().size(1)).allreduce(x);
    context.set_log({});
    REQUIRE(lines > 0);
    REQUIRE(Context::describe_join("tcp://h:7").find("\"sources\"") != std::string::npos);
    REQUIRE(context.describe().find("\"transports\"") != std::string::npos && !version().empty());
}

void test_durations(void **) {
    REQUIRE(detail::nanoseconds(1500us) == 1500000 && detail::nanoseconds(FOREVER) == -1);
    REQUIRE(detail::nanoseconds(std::chrono::duration<double>(0.25)) == 250000000);
    REQUIRE(detail::nanoseconds(std::chrono::hours::max()) == INT64_MAX);
    REQUIRE(detail::nanoseconds(std::chrono::duration<double, std::pico>(3)) == 1);
    REQUIRE(detail::nanoseconds(-5s) == 0);
    THROWS(InvalidError, "timeout: a duration must be more than 0", OpParams().timeout(0s));
    REQUIRE(Options().set("op.timeout", 2s).get("op.timeout").find("2") == 0);
}

// What is made of something keeps it.
void test_handles_in_any_order(void **) {
    std::unique_ptr<Context> context = std::make_unique<Context>(test_options());
    auto comm = std::make_unique<Communicator>(context->join("env", JoinParams().size(1)));
    context.reset();
    auto copy = std::make_unique<Communicator>(comm->duplicate());
    const Table table = comm->table("t", TableParams().length(4));
    const Graph graph = copy->graph(Topology::RING);
    float x[4] = {1, 2, 3, 4};
    const Request prepared = copy->prepare().allreduce(x);
    comm.reset();
    copy.reset();
    table.push(x);
    graph.average(x);
    prepared.start();
    prepared.wait();
    REQUIRE(x[3] == 4);
}

void test_blocking_calls_allocate_nothing(void **) {
    run(2, 0, [](const Context &, const Communicator &comm) {
        std::vector<float> x(64);
        comm.allreduce(x);
        counted = true;
        for (int i = 0; i < 100; i++) comm.allreduce(x, Op::MAX);
        comm.barrier();
        counted = false;
        REQUIRE(allocations == 0);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(test_every_status_has_a_class),
                                cmocka_unit_test(test_texts),
                                cmocka_unit_test(test_timeout),
                                cmocka_unit_test(test_lost_peer_is_named),
                                cmocka_unit_test(test_those_who_are_left_go_on),
                                cmocka_unit_test(test_exceptions_of_callbacks),
                                cmocka_unit_test(test_log),
                                cmocka_unit_test(test_durations),
                                cmocka_unit_test(test_handles_in_any_order),
                                cmocka_unit_test(test_blocking_calls_allocate_nothing)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
