// dtrain.hpp: every collective on three ranks, the ways to run them, what arrays are.
// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <array>
#if __cplusplus >= 202002L
#include <span>
#endif

using namespace dtrain;
using namespace std::chrono_literals;

namespace {

template <class T> void expect(const T &got, std::initializer_list<int> wanted) {
    size_t i = 0;
    for (int value : wanted) {
        const auto found = static_cast<int>(got[i++]);
        if (found != value)
            std::fprintf(stderr, "element %zu is %d, not %d\n", i - 1, found, value);
        REQUIRE(found == value);
    }
}

void test_each(void **) {
    run(3, 0, [](const Context &, const Communicator &comm) {
        const int me = comm.rank();
        std::vector<float> a{float(me), 1}, b(2), all(6);
        comm.allreduce(a, b);
        expect(b, {3, 3});
        comm.allreduce(a, b, Op::MAX);
        expect(b, {2, 1});
        comm.allgather(a, all);
        expect(all, {0, 1, 1, 1, 2, 1});
        comm.reduce(a, me == 1 ? Output(b) : Output(), Op::SUM, 1);
        if (me == 1) expect(b, {3, 3});
        comm.reduce_scatter(all, b);
        expect(b, {3 * me, 3});
        comm.broadcast(b, 2);
        expect(b, {6, 3});
        comm.gather(a, me == 0 ? Output(all) : Output());
        if (me == 0) expect(all, {0, 1, 1, 1, 2, 1});
        comm.scatter(me == 0 ? Input(all) : Input(), b);
        expect(b, {me, 1});
        std::array<int32_t, 3> numbers{me, 10 + me, 20 + me}, got{};
        comm.alltoall(numbers, got);
        expect(got, {me * 10, me * 10 + 1, me * 10 + 2});
        comm.barrier();
    });
}

void test_blocks_of_own_lengths(void **) {
    run(3, 0, [](const Context &, const Communicator &comm) {
        const int me = comm.rank();
        const std::vector<uint64_t> counts{1, 2, 3}, displs{5, 3, 0};
        std::vector<double> mine(counts[size_t(me)], me), whole(6);
        comm.allgatherv(mine, whole, counts);
        expect(whole, {0, 1, 1, 2, 2, 2});
        comm.allgatherv(mine, whole, counts, displs);
        expect(whole, {2, 2, 2, 1, 1, 0});
        comm.gatherv(mine, me == 2 ? Output(whole) : Output(), counts, {}, 2);
        comm.scatterv(me == 2 ? Input(whole) : Input(), mine, counts, {}, 2);
        expect(mine, {me});
        comm.allgatherv(mine, whole, counts);
        comm.reduce_scatterv(whole, mine, counts, Op::SUM);
        expect(mine, {3 * me});
        // Rank i gives i elements to each rank.
        const std::vector<uint64_t> gives(3, uint64_t(me)), gets{0, 1, 2};
        std::vector<int64_t> from(size_t(3 * me), me), to(3);
        comm.alltoallv(from, gives, to, gets);
        expect(to, {1, 2, 2});
    });
}

void test_ways(void **) {
    run(2, 0, [](const Context &context, const Communicator &comm) {
        float x[2] = {1, 2};
        Request first = comm.start().allreduce(x);
        const Result result = first.wait();
        REQUIRE(first.done() && result.peer == -1 && first.wait_for(0s));
        expect(x, {2, 4});
        Request moved = std::move(first);
        REQUIRE(moved.valid() && !first.valid());
        {
            Request again = comm.prepare().allreduce(x);
            for (int i = 0; i < 3; i++) {
                again.start();
                again.wait();
            }
        }
        expect(x, {16, 32});
        comm.with(OpParams().timeout(20s).prescale(0.5)).allreduce(x);
        expect(x, {16, 32});
        std::vector<Request> requests;
        for (int i = 0; i < 4; i++)
            requests.push_back(comm.start(OpParams().priority(i)).barrier());
        wait_all(requests);
        const Queue queue = context.queue();
        comm.with(OpParams().queue(queue, 7)).allreduce(x);
        dtrain_event_t events[4];
        REQUIRE(queue.fd() >= 0);
        const Span<dtrain_event_t> done = queue.poll(events, 20s);
        REQUIRE(done.size() == 1 && done[0].user_tag == 7 && done[0].status == DTRAIN_OK);
        expect(x, {32, 64});
    });
}

void test_messages(void **) {
    run(2, 0, [](const Context &, const Communicator &comm) {
        std::vector<uint16_t> words{1, 2, 3};
        if (comm.rank() == 0) {
            comm.send(words, 1, 5);
        } else {
            std::vector<uint16_t> got(8);
            const Result result = comm.recv(got, ANY_RANK, 5);
            REQUIRE(result.peer == 0 && result.bytes == 6);
            expect(got, {1, 2, 3});
        }
    });
}

enum class Half : uint16_t {};

} // namespace
template <> struct dtrain::DTypeOf<Half> { static constexpr DType value = DType::F16; };
namespace {

void test_arrays(void **) {
    const auto dtype = [](const Input &array) { return array.dtype; };
    const std::vector<Half> halves(3);
    const unsigned long number[1] = {0};
    REQUIRE(dtype(halves) == DType::F16 && dtype(number) == DType::U64);
    REQUIRE(dtype(std::string("ab")) == (std::is_signed<char>::value ? DType::I8 : DType::U8));
    REQUIRE(Input(halves).count == 3 && Input(number).data == number);
    static_assert(!std::is_convertible<const std::vector<float> &, Output>::value,
                  "cannot be written to");
    static_assert(!std::is_convertible<std::vector<float>, Output>::value, "a temporary");
    static_assert(!std::is_convertible<std::vector<bool>, Input>::value, "has no elements");
    static_assert(!std::is_convertible<std::vector<std::string>, Input>::value, "not of numbers");
    static_assert(std::is_convertible<Span<float>, Output>::value, "a view");
    static_assert(!std::is_copy_constructible<Communicator>::value, "moved only");
    static_assert(std::is_nothrow_move_constructible<Request>::value, "in vectors");
#if __cplusplus >= 202002L
    static_assert(std::is_convertible_v<std::span<float>, Output>);
    static_assert(!std::is_convertible_v<std::span<const float>, Output>);
    static_assert(std::is_convertible_v<Span<float>, std::span<float>>);
    static_assert(std::is_convertible_v<std::span<float>, Span<const float>>);
#endif
    run(1, 0, [](const Context &, const Communicator &comm) {
        float x[2] = {1, 2};
        std::vector<double> y(3);
        THROWS(InvalidError, "allreduce: the output has to hold 2 f32, not 3 f64",
               comm.allreduce(x, y));
        const std::vector<uint64_t> two{1, 2}, large{9};
        THROWS(InvalidError, "one for each of 1 ranks", comm.allgatherv(x, x, two));
        THROWS(InvalidError, "ends beyond the array's 2", comm.allgatherv(x, x, large));
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(test_each),
                                cmocka_unit_test(test_blocks_of_own_lengths),
                                cmocka_unit_test(test_ways), cmocka_unit_test(test_messages),
                                cmocka_unit_test(test_arrays)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
