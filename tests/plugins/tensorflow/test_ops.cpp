// The kernels of libdtrain_tensorflow.so without TensorFlow: two ranks of one process, each a
// thread.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "plugins/tensorflow/fake.h"
#include "require.h"
#include "temporary_folder.h"
#include <dlfcn.h>
#include <dtrain.h>
#include <functional>
#include <thread>

using namespace dtrain::tensorflow;

namespace {

using Attributes = std::map<std::string, Value>;
constexpr int64_t second = 1000000000;

int32_t (*put)(const char *, uint32_t, void *, uint32_t, uint64_t);
int32_t (*drop)(const char *);
const char *(*problem)(void);

int open_library(void **) {
    void *library = dlopen(PLUGIN_FOLDER "/hosts/libdtrain_tensorflow.so", RTLD_NOW);
    if (library == nullptr) fail_msg("%s", dlerror());
    put = reinterpret_cast<decltype(put)>(dlsym(library, "dtrain_tensorflow_put"));
    drop = reinterpret_cast<decltype(drop)>(dlsym(library, "dtrain_tensorflow_drop"));
    problem = reinterpret_cast<decltype(problem)>(dlsym(library, "dtrain_tensorflow_problem"));
    assert_string_equal(problem(), "");
    return 0;
}

// A rank: its communicator has the name "rank 0", ...
struct Rank {
    int number;
    dtrain_comm_t *comm;
    std::string group() const { return "rank " + std::to_string(number); }
    Kernel kernel(const std::string &op, Attributes attributes = {}) const {
        attributes.try_emplace("group", group());
        return {op, std::move(attributes)};
    }
    Kernel allreduce() const {
        return kernel("DtrainAllreduce",
                      {{"op", int64_t{DTRAIN_SUM}}, {"factor_count", INT64_C(0)}});
    }
};

// Runs the function as each of two ranks.
void with_ranks(const std::function<void(const Rank &)> &function) {
    const TemporaryFolder folder;
    const std::string place = "file://" + folder.file("job");
    const auto run = [&](int number) {
        dtrain_context_t *context = nullptr;
        dtrain_comm_params_t params;
        DTRAIN_INIT(&params);
        params.size = 2;
        params.rank = number;
        Rank rank{number, nullptr};
        REQUIRE(dtrain_context_create(DTRAIN_API_VERSION, nullptr, &context) == DTRAIN_OK);
        REQUIRE(dtrain_comm_create(context, place.c_str(), &params, &rank.comm) == DTRAIN_OK);
        REQUIRE(put(rank.group().c_str(), 1, rank.comm, 0, 0) == DTRAIN_OK);
        function(rank);
        REQUIRE(drop(rank.group().c_str()) == DTRAIN_OK);
        REQUIRE(dtrain_comm_destroy(rank.comm) == DTRAIN_OK);
        REQUIRE(dtrain_context_destroy(context) == DTRAIN_OK);
    };
    std::thread other(run, 1);
    run(0);
    other.join();
}

void require_floats(const Buffer &buffer, const std::vector<float> &expected) {
    REQUIRE(numbers_of<float>(buffer) == expected);
}

void require_failed(const KernelContext &context, Code code, const std::string &part) {
    const bool good =
        context.failure.text.find(part) != std::string::npos && context.failure.code == code;
    if (!good) std::fprintf(stderr, "failed otherwise: %s\n", context.failure.text.c_str());
    REQUIRE(good);
}

void all_ops_are_registered_and_stateful(void **) {
    assert_int_equal(registered().size(), 19);
    for (const auto &[name, one] : registered()) {
        assert_true(one.op.stateful);
        assert_non_null(reinterpret_cast<void *>(one.kernel.compute));
    }
}

// Sizes on both sides of the limits of packs and blocks, of two types, in one op; twice, for kept
// memory.
void lists_are_reduced(void **) {
    with_ranks([](const Rank &rank) {
        Kernel kernel = rank.allreduce();
        const std::vector<size_t> sizes = {3, 0, 32768, 32769, 1, 20000, 2000000};
        for (const bool forwards : {false, true, false}) {
            std::vector<Buffer> inputs;
            for (const size_t size : sizes)
                inputs.push_back(floats({static_cast<int64_t>(size)},
                                        std::vector<float>(size, float(rank.number + 1))));
            inputs.push_back(longs({1, 2}, {rank.number, 5}));
            const KernelContext done = kernel.run(inputs, inputs.size(), forwards);
            REQUIRE(done.failure.text.empty());
            for (size_t i = 0; i < sizes.size(); i++)
                require_floats(done.outputs[i], std::vector<float>(sizes[i], 3));
            REQUIRE(numbers_of<int64_t>(done.outputs.back()) == (std::vector<int64_t>{1, 10}));
            if (!forwards) require_floats(inputs[0], std::vector<float>(3, float(rank.number + 1)));
        }
    });
}

void factors_are_applied(void **) {
    with_ranks([](const Rank &rank) {
        Kernel kernel = rank.kernel("DtrainAllreduce",
                                    {{"op", int64_t{DTRAIN_SUM}}, {"factor_count", INT64_C(2)}});
        const Buffer before = tensor<double>(2, {}, {0.5}), after = tensor<double>(2, {}, {4});
        require_floats(kernel.run({floats({2}, {1, 2}), before, after}, 1).outputs[0], {4, 8});
    });
}

// Ranks that differ get both sides, and can go on.
void differences_are_errors(void **) {
    with_ranks([](const Rank &rank) {
        Kernel kernel = rank.allreduce();
        const Buffer small = floats({1}, {1}), large = floats({2}, {1, 1});
        const std::vector<Buffer> order =
            rank.number == 0 ? std::vector{small, large} : std::vector{large, small};
        require_failed(kernel.run(order, 2), Code::failed_precondition,
                       "rank 0: all-reduce (sum) of float32[1], float32[2]; rank 1: all-reduce "
                       "(sum) of float32[2]");
        require_floats(kernel.run({small}, 1).outputs[0], {2});
        Kernel other = rank.kernel(rank.number == 0 ? "DtrainBarrier" : "DtrainAllgather");
        require_failed(other.run(rank.number == 0 ? std::vector<Buffer>{} : std::vector{large}, 2),
                       Code::failed_precondition, "rank 0: barrier; rank 1: all-gather");
        require_floats(kernel.run({small}, 1).outputs[0], {2});
    });
}

void rows_travel(void **) {
    with_ranks([](const Rank &rank) {
        const auto own = static_cast<float>(rank.number);
        Kernel gather = rank.kernel("DtrainAllgather");
        const KernelContext gathered =
            gather.run({floats({rank.number, 2}, std::vector<float>(size_t(rank.number) * 2, 7)),
                        floats({1}, {own})},
                       3);
        require_floats(gathered.outputs[0], {7, 7});
        require_floats(gathered.outputs[1], {0, 1});
        REQUIRE(numbers_of<int64_t>(gathered.outputs[2]) == (std::vector<int64_t>{0, 1, 1, 1}));
        require_failed(gather.run({floats({}, {1})}, 2), Code::invalid_argument,
                       "a scalar has no rows");

        Kernel scatter = rank.kernel("DtrainReduceScatter",
                                     {{"op", int64_t{DTRAIN_SUM}}, {"given", INT64_C(0)}});
        require_floats(scatter.run({floats({3}, {1, 2, 3})}, 1).outputs[0],
                       rank.number == 0 ? std::vector<float>{2, 4} : std::vector<float>{6});
        Kernel given = rank.kernel("DtrainReduceScatter",
                                   {{"op", int64_t{DTRAIN_SUM}}, {"given", INT64_C(1)}});
        require_failed(given.run({floats({3}, {1, 2, 3}), longs({1, 2}, {3, 1})}, 1),
                       Code::invalid_argument, "rows: 1 does not fit");
        require_failed(
            given.run({floats({3}, {1, 2, 3}), longs({1, 2}, {INT64_MAX, INT64_MAX})}, 1),
            Code::invalid_argument, "does not fit");

        Kernel exchange = rank.kernel("DtrainAlltoall");
        const KernelContext got =
            exchange.run({floats({3}, {own, own, own}), longs({2}, {1, 2})}, 2);
        require_floats(got.outputs[0], rank.number == 0 ? std::vector<float>{0, 1}
                                                        : std::vector<float>{0, 0, 1, 1});
        require_failed(
            exchange.run({floats({3}, {0, 0, 0}), longs({2}, {1, rank.number == 0 ? 2 : -1})}, 2),
            Code::failed_precondition,
            "rank 1: all-to-all of float32[-1]: splits: -1 does not fit");

        Kernel copy = rank.kernel("DtrainBroadcast", {{"root", INT64_C(1)}});
        const KernelContext copies =
            copy.run({floats({1}, {own}), longs({2}, {rank.number, 5})}, 2, true);
        require_floats(copies.outputs[0], {1});
        REQUIRE(numbers_of<int64_t>(copies.outputs[1]) == (std::vector<int64_t>{1, 5}));
    });
}

// An object stays while an op uses it, and an op without its object fails.
void objects_stay_while_they_are_used(void **) {
    with_ranks([](const Rank &rank) {
        const auto alone = [&] {
            return rank.kernel("DtrainAllreduce", {{"group", "alone"},
                                                   {"timeout", 3 * second},
                                                   {"op", int64_t{DTRAIN_SUM}},
                                                   {"factor_count", INT64_C(0)}});
        };
        dtrain_comm_t *own = nullptr;
        REQUIRE(dtrain_comm_duplicate(rank.comm, &own) == DTRAIN_OK);
        if (rank.number == 0) {
            REQUIRE(put("alone", 1, own, 0, 0) == DTRAIN_OK);
            REQUIRE(put("alone", 1, own, 0, 0) == DTRAIN_ERR_BUSY);
            Kernel waits = alone();
            const int before = inputs_read;
            std::thread thread([&] {
                require_failed(waits.run({floats({1}, {1})}, 1), Code::deadline_exceeded,
                               "rank 0 of 2");
            });
            while (inputs_read == before)
                std::this_thread::yield(); // the op has the object by then
            REQUIRE(drop("alone") == DTRAIN_ERR_BUSY);
            thread.join();
            REQUIRE(drop("alone") == DTRAIN_OK);
            require_failed(waits.run({floats({1}, {1})}, 1), Code::failed_precondition,
                           "\"alone\" is nothing in this process");
        }
        REQUIRE(dtrain_barrier(rank.comm, nullptr, nullptr) == DTRAIN_OK);
        REQUIRE(dtrain_comm_destroy(own) == DTRAIN_OK);
    });
}

// Names are compared with their shapes at first use and when they change, in any order of ranks,
// also while one has joined.
void names_are_compared(void **) {
    with_ranks([](const Rank &rank) {
        dtrain_gradients_t *queue = nullptr;
        REQUIRE(dtrain_gradients_create(rank.comm, nullptr, &queue) == DTRAIN_OK);
        const std::string name = "queue of " + rank.group();
        REQUIRE(put(name.c_str(), 2, queue, 0, 0) == DTRAIN_OK);
        const auto submit = [&](std::vector<std::string> names, std::string note = "") {
            return Kernel("DtrainSubmit", {{"group", name},
                                           {"names", std::move(names)},
                                           {"op", int64_t{DTRAIN_SUM}},
                                           {"priority", INT64_C(0)},
                                           {"members", rank.group()},
                                           {"note", std::move(note)}});
        };
        const bool first = rank.number == 0;
        const Buffer one = floats({1}, {1}), two = floats({2}, {2, 2}),
                     wide = floats({1, 2}, {3, 3});
        for (int turn = 0; turn < 2; turn++) {
            const KernelContext done = first ? submit({"a", "b"}).run({one, two}, 2)
                                             : submit({"b", "a"}).run({two, one}, 2);
            REQUIRE(done.failure.text.empty());
            require_floats(done.outputs[first ? 0 : 1], {2});
            require_floats(done.outputs[first ? 1 : 0], {4, 4});
        }
        // "b" is known: one rank's tensor meets the other's claim.
        require_failed(submit({"b"}).run({first ? two : wide}, 1), Code::failed_precondition,
                       "named all-reduce (sum) of \"b\"");
        require_floats(submit({"b"}).run({two}, 1).outputs[0], {4, 4});
        require_floats(submit({"b"}).run({wide}, 1).outputs[0], {6, 6});
        const std::vector<Buffer> mixed = {one, first ? two : wide};
        require_failed(submit({"c", "d"}).run(mixed, 2), Code::failed_precondition,
                       "rank 0 has float32[2], sum; rank 1 has float32[1,2], sum");
        require_floats(submit({"c"}).run({one}, 1).outputs[0], {2});
        require_failed(submit({"e"}, first ? "half" : "").run({one}, 1), Code::failed_precondition,
                       "rank 0 has float32[1], sum, half; rank 1 has float32[1], sum");
        REQUIRE(submit({"f"}).run({floats({0}, {})}, 1).failure.text.empty());
        if (first) {
            REQUIRE(dtrain_gradients_join(queue, nullptr, nullptr, nullptr) == DTRAIN_OK);
        } else {
            require_floats(submit({"a"}).run({one}, 1).outputs[0], {1});
            require_floats(submit({"late"}).run({two}, 1).outputs[0], {2, 2});
            REQUIRE(dtrain_gradients_join(queue, nullptr, nullptr, nullptr) == DTRAIN_OK);
        }
        require_floats(submit({"late"}).run({two}, 1).outputs[0], {4, 4});
        REQUIRE(drop(name.c_str()) == DTRAIN_OK);
        REQUIRE(dtrain_gradients_destroy(queue) == DTRAIN_OK);
    });
}

// A rank in join() is so on the communicators of sets as well, and sets that are gone do not
// matter.
void joining_counts_in_sets(void **) {
    with_ranks([](const Rank &rank) {
        dtrain_comm_t *own = nullptr;
        dtrain_gradients_t *queue = nullptr, *own_queue = nullptr;
        REQUIRE(dtrain_comm_duplicate(rank.comm, &own) == DTRAIN_OK);
        REQUIRE(dtrain_gradients_create(rank.comm, nullptr, &queue) == DTRAIN_OK);
        REQUIRE(dtrain_gradients_create(own, nullptr, &own_queue) == DTRAIN_OK);
        const std::string of = " of " + rank.group(), set = "set" + of, name = "queue" + of,
                          set_name = "queue of set" + of;
        REQUIRE(put(set.c_str(), 1, own, 0, 0) == DTRAIN_OK);
        REQUIRE(put(name.c_str(), 2, queue, 0, 0) == DTRAIN_OK);
        REQUIRE(put(set_name.c_str(), 2, own_queue, 0, 0) == DTRAIN_OK);
        Kernel gather("DtrainAllgather", {{"group", set}});
        Kernel join = rank.kernel("DtrainJoin", {{"queue", name},
                                                 {"sets", std::vector<std::string>{"gone", set}},
                                                 {"set_queues", std::vector{name, set_name}}});
        Kernel submit("DtrainSubmit", {{"group", set_name},
                                       {"names", std::vector<std::string>{"a"}},
                                       {"op", int64_t{DTRAIN_SUM}},
                                       {"priority", INT64_C(0)},
                                       {"members", set},
                                       {"note", std::string()}});
        for (int turn = 0; turn < 2; turn++) {
            if (rank.number == 0) {
                for (int i = 0; i < 2; i++) {
                    require_failed(gather.run({floats({1}, {1})}, 2), Code::failed_precondition,
                                   "rank 1 has called join()");
                    require_floats(submit.run({floats({1}, {3})}, 1).outputs[0], {3});
                }
            }
            REQUIRE(join.run({}, 1).failure.text.empty());
            require_floats(gather.run({floats({1}, {2})}, 2).outputs[0], {2, 2});
            require_floats(submit.run({floats({1}, {3})}, 1).outputs[0], {6});
        }
        for (const std::string &one : {set, name, set_name})
            REQUIRE(drop(one.c_str()) == DTRAIN_OK);
        REQUIRE(dtrain_gradients_destroy(own_queue) == DTRAIN_OK);
        REQUIRE(dtrain_gradients_destroy(queue) == DTRAIN_OK);
        REQUIRE(dtrain_comm_destroy(own) == DTRAIN_OK);
    });
}

void tables_are_used(void **) {
    with_ranks([](const Rank &rank) {
        dtrain_table_params_t params;
        DTRAIN_INIT(&params);
        params.dtype = DTRAIN_F32;
        params.length = 6;
        params.consistency = DTRAIN_BSP;
        dtrain_table_t *dense = nullptr, *sparse = nullptr;
        REQUIRE(dtrain_table_create(rank.comm, "dense", &params, &dense) == DTRAIN_OK);
        params.length = 0;
        params.dim = 2;
        params.consistency = DTRAIN_ASYNC;
        REQUIRE(dtrain_table_create(rank.comm, "sparse", &params, &sparse) == DTRAIN_OK);
        const std::string of = " of " + rank.group(), one = "dense" + of, two = "sparse" + of;
        REQUIRE(put(one.c_str(), 3, dense, DTRAIN_F32, 0) == DTRAIN_OK);
        REQUIRE(put(two.c_str(), 3, sparse, DTRAIN_F32, 2) == DTRAIN_OK);

        Kernel step(
            "DtrainStep",
            {{"group", one}, {"tables", std::vector{one}}, {"members", std::vector<int64_t>{2}}});
        const KernelContext values =
            step.run({floats({2, 2}, {1, 2, 3, 4}), floats({2}, {5, 6})}, 2);
        REQUIRE(values.failure.text.empty());
        require_floats(values.outputs[0], {2, 4, 6, 8});
        require_floats(values.outputs[1], {10, 12});
        Kernel wrong(
            "DtrainStep",
            {{"group", one}, {"tables", std::vector{one}}, {"members", std::vector<int64_t>{3}}});
        require_failed(wrong.run({floats({6}, {1, 2, 3, 4, 5, 6})}, 1), Code::invalid_argument,
                       "do not fit to 1");

        Kernel push("DtrainPushRows", {{"group", two}}), pull("DtrainPullRows", {{"group", two}});
        REQUIRE(push.run({longs({1}, {7 + rank.number}), floats({1, 2}, {3, 4})}, 0)
                    .failure.text.empty());
        REQUIRE(dtrain_barrier(rank.comm, nullptr, nullptr) == DTRAIN_OK);
        require_floats(pull.run({longs({3}, {8, 7, 9})}, 1).outputs[0], {3, 4, 3, 4, 0, 0});
        require_failed(push.run({longs({2}, {1, 2}), floats({3}, {1, 1, 1})}, 0),
                       Code::invalid_argument,
                       "float32[3] for keys int64[2] and rows of 2 elements");
        require_failed(
            Kernel("DtrainPull",
                   {{"group", two}, {"first", INT64_C(0)}, {"shape", std::vector<int64_t>{1}}})
                .run({}, 1),
            Code::invalid_argument, "the table is sparse: use keys");
        require_failed(
            Kernel("DtrainPull",
                   {{"group", one}, {"first", INT64_C(4)}, {"shape", std::vector<int64_t>{9}}})
                .run({}, 1),
            Code::invalid_argument, "pull from table");

        for (const int64_t size : {INT64_C(-1), INT64_MAX})
            require_failed(
                Kernel("DtrainPull",
                       {{"group", one}, {"first", INT64_C(0)}, {"shape", std::vector{size}}})
                    .run({}, 1),
                Code::invalid_argument, "no tensor can have the shape");
        REQUIRE(dtrain_barrier(rank.comm, nullptr, nullptr) == DTRAIN_OK);
        REQUIRE(drop(one.c_str()) == DTRAIN_OK);
        REQUIRE(drop(two.c_str()) == DTRAIN_OK);
        REQUIRE(dtrain_table_destroy(dense) == DTRAIN_OK);
        REQUIRE(dtrain_table_destroy(sparse) == DTRAIN_OK);
    });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(all_ops_are_registered_and_stateful),
        cmocka_unit_test(lists_are_reduced),
        cmocka_unit_test(factors_are_applied),
        cmocka_unit_test(differences_are_errors),
        cmocka_unit_test(rows_travel),
        cmocka_unit_test(objects_stay_while_they_are_used),
        cmocka_unit_test(names_are_compared),
        cmocka_unit_test(joining_counts_in_sets),
        cmocka_unit_test(tables_are_used),
    };
    return cmocka_run_group_tests(tests, open_library, nullptr);
}
