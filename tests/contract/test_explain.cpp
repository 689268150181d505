// What DTRAIN_EXPLAIN says.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <algorithm>

namespace {

// The lines of rank 0's log; other ranks must say nothing.
struct Lines {
    std::mutex mutex;
    std::vector<std::string> all;

    static void add(void *self, int32_t, const char *line) {
        auto *lines = static_cast<Lines *>(self);
        std::lock_guard lock(lines->mutex);
        lines->all.push_back(line);
    }
    size_t count(const std::string &a, const std::string &b = "") {
        return size_t(std::count_if(all.begin(), all.end(), [&](const std::string &line) {
            return line.find(a) != std::string::npos && line.find(b) != std::string::npos;
        }));
    }
};

void calls(int ranks, ranks::Options options, Lines (&lines)[2], const ranks::Body &body) {
    options.emplace_back("explain", "yes");
    options.emplace_back("log.level", "error");
    ranks::run_with_contexts(ranks, options,
                             [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                                 OK(dtrain_context_set_log(context, Lines::add, &lines[rank != 0]));
                                 body(rank, context, comm);
                             });
    assert_int_equal(lines[1].all.size(), 0);
}

void each_way_once_and_a_table(void **) {
    Lines lines[2];
    // Otherwise the way depends on how far the ranks' cores are apart.
    calls(2, {{"shm.copy", "ring"}}, lines,
          [](int, dtrain_context_t *context, dtrain_comm_t *comm) {
              constexpr uint64_t large = 100000;
              std::vector<float> data(large);
              for (int i = 0; i < 300; i++)
                  OK(dtrain_allreduce(comm, data.data(), data.data(), 4, DTRAIN_F32, DTRAIN_SUM,
                                      nullptr, nullptr));
              for (int i = 0; i < 3; i++)
                  OK(dtrain_allreduce(comm, data.data(), data.data(), large, DTRAIN_F32, DTRAIN_SUM,
                                      nullptr, nullptr));
              for (uint64_t count : {large, large - 1, large - 1000})
                  OK(dtrain_broadcast(comm, data.data(), count, DTRAIN_F32, 0, nullptr, nullptr));
              dtrain_mem_t *memory = nullptr;
              OK(dtrain_mem_alloc(context, large * 4, &memory));
              dtrain_op_params_t params;
              DTRAIN_INIT(&params);
              OK(dtrain_allreduce(comm, dtrain_mem_address(memory), dtrain_mem_address(memory),
                                  large, DTRAIN_F32, DTRAIN_SUM, &params, nullptr));
              OK(dtrain_mem_deregister(memory));
          });
    Lines &said = lines[0];
    assert_int_equal(said.count("allreduce of 16 bytes f32 over 2 ranks: window exchange (inside"),
                     1);
    assert_int_equal(said.count("allreduce of 400000 bytes f32 over 2 ranks: window pipeline"), 1);
    assert_int_equal(said.count("window direct (inside a host, all ranks' buffers are shared"), 1);
    assert_int_equal(said.count("broadcast of 400000 bytes f32 over 2 ranks: window pipeline"), 1);
    assert_int_equal(said.count("explain: "), said.all.size());
    // The distance; the table: a heading and a line for each of the four.
    assert_int_equal(said.all.size(), 4 + 1 + 1 + 4);
    assert_int_equal(said.count("2 ranks: cores are "),
                     1); // measured, unless others keep them busy
    assert_int_equal(said.count("bytes from", "median"), 1);
    auto has = [&](const char *row) {
        return std::any_of(said.all.begin(), said.all.end(), [&](const std::string &line) {
            std::string squeezed; // runs of blanks become one
            for (char c : line)
                if (c != ' ' || squeezed.empty() || squeezed.back() != ' ') squeezed += c;
            return squeezed.find(row) != std::string::npos;
        });
    };
    assert_true(has("allreduce 16 window exchange 300 - "));
    assert_true(has("allreduce 262144 window pipeline 3 - "));
    assert_true(has("allreduce 262144 window direct 1 - "));
    assert_true(has("broadcast 262144 "));
}

void the_distance_is_given(void **) {
    const auto make_a_call = [](int, dtrain_context_t *, dtrain_comm_t *comm) {
        float sum = 1;
        OK(dtrain_allreduce(comm, &sum, &sum, 1, DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr));
    };
    Lines lines[2], others[2];
    calls(2, {{"shm.distance", "far"}}, lines, make_a_call);
    assert_int_equal(lines[0].count("cores are taken to be far apart: option shm.distance"), 1);
    calls(2, {}, others, make_a_call);
    assert_int_equal(others[0].count("cores are taken to be near: it was not measured"), 1);
}

void predicted_over_messages(void **) {
    Lines lines[2];
    calls(2, {{"transports", "tcp"}}, lines, [](int, dtrain_context_t *, dtrain_comm_t *comm) {
        std::vector<float> data(100000);
        OK(dtrain_broadcast(comm, data.data(), data.size(), DTRAIN_F32, 0, nullptr, nullptr));
    });
    assert_int_equal(lines[0].count("broadcast of 400000 bytes", " (predicted "), 1);
}

void what_is_forced(void **) {
    Lines lines[2];
    calls(3, {{"allreduce.algorithm", "double_tree"}}, lines,
          [](int, dtrain_context_t *, dtrain_comm_t *comm) {
              float data[100] = {};
              OK(dtrain_allreduce(comm, data, data, 100, DTRAIN_F32, DTRAIN_SUM, nullptr, nullptr));
              OK(dtrain_allgather(comm, data, std::vector<float>(300).data(), 100, DTRAIN_F32,
                                  nullptr, nullptr));
          });
    assert_int_equal(lines[0].count("double_tree (forced by option allreduce.algorithm"), 1);
    assert_int_equal(lines[0].count("allgather of 400 bytes", "window exchange"), 1);
    assert_int_equal(lines[0].count("others predicted: ", "direct "), 1);
}

void silent_unless_wanted(void **) {
    Lines lines[2];
    ranks::run_with_contexts(2, {{"log.level", "debug"}},
                             [&](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
                                 OK(dtrain_context_set_log(context, Lines::add, &lines[rank]));
                                 OK(dtrain_barrier(comm, nullptr, nullptr));
                             });
    assert_int_equal(lines[0].count("explain"), 0);
}

// Ranks that took different algorithms would end in errors; sums are of small integers, so exact.
void adapting_ranks_always_take_the_same(void **) {
    Lines lines[2];
    calls(4, {{"tuning.adapt", "yes"}, {"transports", "tcp"}}, lines,
          [](int rank, dtrain_context_t *, dtrain_comm_t *comm) {
              constexpr uint64_t count = 5000;
              constexpr int in_flight = 4;
              std::vector<float> data[in_flight];
              for (int round = 0; round < 12; round++) {
                  dtrain_request_t *requests[in_flight];
                  for (int i = 0; i < in_flight; i++) {
                      data[i].assign(count, float(rank + i));
                      OK(dtrain_allreduce(comm, data[i].data(), data[i].data(), count, DTRAIN_F32,
                                          DTRAIN_SUM, nullptr, &requests[i]));
                  }
                  for (int i = 0; i < in_flight; i++) {
                      OK(dtrain_request_wait(requests[i], -1));
                      dtrain_request_free(requests[i]);
                      for (float value : data[i]) REQUIRE(value == float(6 + 4 * i));
                  }
                  std::vector<float> other(count);
                  data[0].assign(count, 1);
                  // Not all ranks in place: their plans differ.
                  const bool in_place = rank % 2 == 0;
                  float *to = in_place ? data[0].data() : other.data();
                  OK(dtrain_allreduce(comm, data[0].data(), to, count, DTRAIN_F32, DTRAIN_SUM,
                                      nullptr, nullptr));
                  REQUIRE(to[count - 1] == 4);
              }
          });
    assert_int_equal(lines[0].count("allreduce of 20000 bytes over 4 ranks: ", "from now on"), 1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(each_way_once_and_a_table),
        cmocka_unit_test(the_distance_is_given),
        cmocka_unit_test(predicted_over_messages),
        cmocka_unit_test(what_is_forced),
        cmocka_unit_test(adapting_ranks_always_take_the_same),
        cmocka_unit_test(silent_unless_wanted),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
