// While a GPU does not get on, its server answers for all else: nobody waits for a table that he
// does not use.
// SPDX-License-Identifier: Apache-2.0
#include "contract/checkpoints.h"
#include "gpu/twins.h"

#include <thread>

namespace {

using gpu::table_params;
using gpu::Twins;
using gpu::with_device;

constexpr uint64_t length = 300'007; // several requests

// The GPU does nothing while this lives.
class Stall {
  public:
    Stall() { stall(1); }
    ~Stall() { end(); }
    Stall(const Stall &) = delete;
    void end() { stall(0); }

  private:
    static void stall(int on) { gpu::call_void<int>("fakecuda_stall", on); }
};

dtrain_op_params_t within_4_s() { // a server gives a GPU 10 s
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = 4'000'000'000;
    return params;
}

// What the server of this table does now comes in time.
void is_prompt(dtrain_table_t *table) {
    const dtrain_op_params_t params = within_4_s();
    std::vector<float> values(1000);
    OK(dtrain_table_set(table, 0, 1000, values.data(), &params, nullptr));
    OK(dtrain_table_pull(table, 0, 1000, values.data(), &params, nullptr));
}

template <class F> void with_servers(int servers, const ranks::Options &options, F &&body) {
    ranks::run(1, servers, options, [&](int, dtrain_comm_t *comm) {
        const dtrain_table_params_t params = table_params(DTRAIN_RULE_ADD, DTRAIN_F32, 1000);
        dtrain_table_t *other = nullptr;
        OK(dtrain_table_create(comm, "other", &params, &other));
        body(comm, other);
        OK(dtrain_table_destroy(other));
    });
}
// Of a server of its own, and of one that the worker's process is.
template <class F> void with_servers(F &&body) {
    for (const int servers : {1, 0}) with_servers(servers, with_device, body);
}

void end(dtrain_request_t *request) {
    OK(dtrain_request_wait(request, -1));
    dtrain_request_free(request);
}

void pulls(void **) {
    gpu::needs_fake();
    with_servers([](dtrain_comm_t *comm, dtrain_table_t *other) {
        const Twins twins(comm, table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, length));
        std::vector<float> g(length, 1), got(length), state(length), expected(length);
        twins.push(0, length, g.data());
        dtrain_request_t *values = nullptr, *moments = nullptr, *pushed = nullptr;
        Stall stall;
        OK(dtrain_table_pull(twins.on_device(), 0, length, got.data(), nullptr, &values));
        OK(dtrain_table_pull_state(twins.on_device(), 0, 0, length, state.data(), nullptr,
                                   &moments));
        OK(dtrain_table_push_pull(twins.on_device(), 0, 1000, g.data(), g.data(), nullptr,
                                  &pushed));
        is_prompt(other);
        FAILS(DTRAIN_IN_PROGRESS, dtrain_request_test(values));
        stall.end();
        end(values);
        end(moments);
        end(pushed);
        OK(dtrain_table_pull(twins.on_host(), 0, length, expected.data(), nullptr, nullptr));
        REQUIRE(std::equal(got.begin() + 1000, got.end(), expected.begin() + 1000));
        OK(dtrain_table_pull_state(twins.on_host(), 0, 0, length, expected.data(), nullptr,
                                   nullptr));
        REQUIRE(std::equal(state.begin() + 1000, state.end(), expected.begin() + 1000));
    });
}

// More than there is memory for data on their way.
void pushes(void **) {
    gpu::needs_fake();
    with_servers([](dtrain_comm_t *comm, dtrain_table_t *other) {
        const Twins twins(comm, table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, length));
        const std::vector<float> g(length, 1);
        std::vector<dtrain_request_t *> requests(8);
        Stall stall;
        for (dtrain_request_t *&request : requests)
            OK(dtrain_table_push(twins.on_device(), 0, length, g.data(), nullptr, &request));
        is_prompt(other);
        stall.end();
        for (dtrain_request_t *request : requests) end(request);
        for (size_t i = 0; i < requests.size(); i++)
            OK(dtrain_table_push(twins.on_host(), 0, length, g.data(), nullptr, nullptr));
        twins.same_values();
        twins.same_state();
    });
}

// The update of a clock, of more than there is memory for data on their way.
void clocks(void **) {
    gpu::needs_fake();
    with_servers([](dtrain_comm_t *comm, dtrain_table_t *other) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_ADAM, DTRAIN_F32, 2'000'000);
        params.consistency = DTRAIN_BSP;
        const Twins twins(comm, params);
        const std::vector<float> g(params.length, 1);
        std::vector<float> got(1000), moments(1000), expected(1000);
        for (int clock = 0; clock < 3; clock++) {
            twins.push(0, params.length, g.data());
            dtrain_request_t *request = nullptr;
            Stall stall;
            twins.both([](dtrain_table_t *t) { return dtrain_table_clock(t, nullptr, nullptr); });
            OK(dtrain_table_pull(twins.on_device(), 0, 1000, got.data(), nullptr, &request));
            is_prompt(other);
            // These come after the update of the clock.
            dtrain_request_t *state = nullptr, *set = nullptr;
            OK(dtrain_table_pull_state(twins.on_device(), 0, 0, 1000, moments.data(), nullptr,
                                       &state));
            OK(dtrain_table_set(twins.on_device(), 7, 1, g.data(), nullptr, &set));
            is_prompt(other);
            stall.end();
            for (dtrain_request_t *each : {request, state, set}) end(each);
            OK(dtrain_table_set(twins.on_host(), 7, 1, g.data(), nullptr, nullptr));
            twins.same_values();
            OK(dtrain_table_pull_state(twins.on_host(), 0, 0, 1000, expected.data(), nullptr,
                                       nullptr));
            REQUIRE(moments == expected);
        }
        twins.same_state();
    });
}

// The GPU stops when a part of a clock's update is there.
void a_stop_amid_a_clock(void **) {
    gpu::needs_fake();
    for (const int pieces : {4, 8, 20})
        with_servers([pieces](dtrain_comm_t *comm, dtrain_table_t *other) {
            dtrain_table_params_t params =
                table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, 2'000'000);
            params.consistency = DTRAIN_BSP;
            const Twins twins(comm, params);
            const std::vector<float> g(params.length, 1);
            std::vector<float> got(1000);
            for (int clock = 0; clock < 2; clock++) {
                twins.push(0, params.length, g.data());
                dtrain_request_t *request = nullptr;
                gpu::call_void<int>("fakecuda_stall_after", pieces);
                OK(dtrain_table_clock(twins.on_device(), nullptr, nullptr));
                OK(dtrain_table_pull(twins.on_device(), 0, 1000, got.data(), nullptr, &request));
                is_prompt(other);
                is_prompt(other);
                FAILS(DTRAIN_IN_PROGRESS, dtrain_request_test(request));
                gpu::call_void<int>("fakecuda_stall", 0);
                end(request);
                OK(dtrain_table_clock(twins.on_host(), nullptr, nullptr));
                twins.same_values();
            }
            twins.same_state();
        });
}

// The first table of a server opens the GPU.
void openings(void **) {
    gpu::needs_fake();
    with_servers([](dtrain_comm_t *comm, dtrain_table_t *other) {
        const dtrain_table_params_t host = table_params(DTRAIN_RULE_ADD, DTRAIN_F32, length);
        for (int i = 0; i < 2; i++) {
            dtrain_table_params_t params = host;
            params.memory = DTRAIN_MEM_CUDA;
            params.initial = 2;
            dtrain_table_t *table = nullptr;
            Stall stall;
            std::thread creator([&] { OK(dtrain_table_create(comm, "t", &params, &table)); });
            is_prompt(other);
            stall.end();
            creator.join();
            std::vector<float> values(length);
            OK(dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
            for (const float x : values) REQUIRE(x == 2);
            OK(dtrain_table_destroy(table));
        }
    });
}

// A table that is destroyed, and one whose creator has given up.
void ends(void **) {
    gpu::needs_fake();
    with_servers([](dtrain_comm_t *comm, dtrain_table_t *other) {
        dtrain_table_params_t params = table_params(DTRAIN_RULE_ADD, DTRAIN_F32, length);
        params.memory = DTRAIN_MEM_CUDA;
        dtrain_table_t *table = nullptr, *second = nullptr;
        OK(dtrain_table_create(comm, "t", &params, &table));
        const std::vector<float> g(1000, 1);
        Stall stall;
        OK(dtrain_table_push(table, 0, 1000, g.data(), nullptr, nullptr));
        OK(dtrain_table_destroy(table));
        is_prompt(other);
        stall.end();
        OK(dtrain_table_create(comm, "t", &params, &second));
        OK(dtrain_table_destroy(second));
    });
}

// A push while a save copies what it changes: the save has all of it, or nothing.
void save_and_restore(dtrain_comm_t *comm, dtrain_table_t *other) {
    constexpr uint64_t changed = 50'000; // one request
    const Twins twins(comm, table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, length));
    dtrain_table_t *table = twins.on_device();
    const std::vector<float> g(length, 1);
    twins.push(0, length, g.data());
    {
        dtrain_request_t *request = nullptr;
        Stall stall;
        std::thread saver([&] { OK(dtrain_checkpoint_save(&table, 1, 1, nullptr, nullptr)); });
        is_prompt(other);
        OK(dtrain_table_push(table, 0, changed, g.data(), nullptr, &request));
        is_prompt(other);
        stall.end();
        end(request);
        saver.join();
    }
    OK(dtrain_table_push(table, 0, length, g.data(), nullptr, nullptr));
    Stall stall;
    std::thread restorer([&] { OK(dtrain_checkpoint_restore(&table, 1, 1, nullptr, nullptr)); });
    is_prompt(other);
    stall.end();
    restorer.join();
    std::vector<float> restored(length), once(length);
    OK(dtrain_table_pull(table, 0, length, restored.data(), nullptr, nullptr));
    OK(dtrain_table_pull(twins.on_host(), 0, length, once.data(), nullptr, nullptr));
    for (uint64_t i = 0; i < changed; i++) REQUIRE(restored[i] == restored[0]);
    for (uint64_t i = changed; i < length; i++) REQUIRE(restored[i] == once[i]);
}

// The GPU stops when a part of what is saved has been read.
void stop_amid_a_save(dtrain_comm_t *comm, dtrain_table_t *other) {
    dtrain_table_params_t params = table_params(DTRAIN_RULE_MOMENTUM, DTRAIN_F32, 2'000'000);
    const Twins twins(comm, params);
    dtrain_table_t *table = twins.on_device();
    const std::vector<float> g(params.length, 1);
    twins.push(0, params.length, g.data());
    for (const int pieces : {4, 6, 9}) {
        gpu::call_void<int>("fakecuda_stall_after", pieces);
        std::thread saver(
            [&] { OK(dtrain_checkpoint_save(&table, 1, uint64_t(pieces), nullptr, nullptr)); });
        usleep(300'000);
        is_prompt(other);
        is_prompt(other);
        gpu::call_void<int>("fakecuda_stall", 0);
        saver.join();
        OK(dtrain_table_push(table, 0, 1000, g.data(), nullptr, nullptr));
        OK(dtrain_checkpoint_restore(&table, 1, uint64_t(pieces), nullptr, nullptr));
        twins.same_values();
    }
}

void checkpoints_too(void **) {
    gpu::needs_fake();
    for (const int servers : {1, 0}) {
        const checkpoints::Folder folder;
        ranks::Options options = folder.options();
        options.push_back(with_device[0]);
        for (const auto &body : {save_and_restore, stop_amid_a_save})
            with_servers(servers, options, body);
    }
}

} // namespace

int main() {
    setenv("DTRAIN_OP_TIMEOUT", "60s", 0);
    const CMUnitTest tests[] = {
        cmocka_unit_test(openings),
        cmocka_unit_test(pulls),
        cmocka_unit_test(pushes),
        cmocka_unit_test(clocks),
        cmocka_unit_test(a_stop_amid_a_clock),
        cmocka_unit_test(ends),
        cmocka_unit_test(checkpoints_too),
    };
    return cmocka_run_group_tests_name("tables in a GPU's memory that does not get on", tests,
                                       nullptr, nullptr);
}
