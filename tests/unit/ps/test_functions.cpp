// How tables with functions are described, and what a call does that fails.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "ps/optimizer/function_call.h"
#include "ps/optimizer/function_registry.h"
#include "ps/server/server.h"
#include "ps/storage/shard.h"
#include "ps/table/table_wire.h"

#include <cstdio>
#include <cstring>

using namespace dtrain::ps;
using dtrain::Status;

namespace {

TableParams params_of(const char *function) {
    TableParams params;
    params.length = 64;
    params.row_length = 8;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_FUNCTION;
    params.function = function;
    return params;
}

// Every beginning of a description is refused or, by chance, one of another name.
void descriptions_are_bounded(void **) {
    const TableParams params = params_of("some_function");
    const std::string payload = encode_table(params, "t");
    TableParams back;
    std::string name;
    uint32_t bad = 0;
    assert_true(decode_table(payload.data(), payload.size(), back, name, bad));
    assert_int_equal(bad, field_count);
    assert_string_equal(name.c_str(), "t");
    assert_int_equal(first_difference(params, back), field_count);
    for (size_t n = 0; n < payload.size(); ++n) {
        const std::vector<char> exact(payload.begin(), payload.begin() + ptrdiff_t(n));
        assert_false(decode_table(exact.data(), n, back, name, bad));
    }
    auto changed = [&](size_t at, uint64_t value, const std::string &tail = "") {
        std::string other = payload + tail;
        std::memcpy(other.data() + at, &value, sizeof value);
        TableParams its;
        uint32_t field = field_count;
        bool is = decode_table(other.data(), other.size(), its, name, field);
        return is ? field : UINT32_MAX;
    };
    const size_t function_bytes = sizeof(TableFields);
    for (uint64_t n : {uint64_t{14}, uint64_t{64}, uint64_t{1} << 32, UINT64_MAX})
        assert_int_equal(changed(function_bytes, n), UINT32_MAX);
    assert_int_equal(changed(function_bytes, 0), function_field);
    assert_int_equal(changed(function_bytes + 8, 0), function_field); // NULs in the name
    assert_int_equal(changed(function_bytes, 13, std::string(255, 'x')), UINT32_MAX);
    assert_int_equal(changed(function_bytes, 13, std::string(254, 'x')), field_count);
    assert_int_equal(changed(0, 0), 0); // no length
    TableParams other = params;
    other.function = "another";
    assert_int_equal(first_difference(params, other), function_field);
    assert_string_equal(field_name(function_field), "function");
}

void segments_are_bounded(void **) {
    TableParams params = params_of("");
    params.rule = DTRAIN_RULE_ADD;
    params.segments.resize(2);
    params.segments[0] = {.first = 0, .count = 3, .rule = DTRAIN_RULE_ADAGRAD};
    params.segments[1] = {.first = 3, .count = 5, .rule = DTRAIN_RULE_FTRL};
    const std::string payload = encode_table(params, "t");
    const size_t count_at = sizeof(TableFields) + 4, first_at = count_at + 4;
    TableParams back;
    std::string name;
    uint32_t bad = 0;
    auto decodes = [&](const std::string &bytes) {
        bad = UINT32_MAX;
        back = {};
        return decode_table(bytes.data(), bytes.size(), back, name, bad);
    };
    assert_true(decodes(payload) && bad == field_count);
    assert_true(back.segments == params.segments);
    assert_int_equal(first_difference(params, back), field_count);
    back.segments[1].beta1 = 0.5;
    assert_int_equal(first_difference(params, back), segments_field);
    for (size_t n = 0; n < payload.size(); ++n)
        assert_false(decodes(payload.substr(0, n)) && bad == field_count);
    auto changed = [&](size_t at, uint64_t value, size_t bytes) {
        std::string other = payload;
        std::memcpy(&other[at], &value, bytes);
        return decodes(other) ? bad : UINT32_MAX;
    };
    for (uint64_t many : {uint64_t{3}, uint64_t{17}, uint64_t{UINT32_MAX}})
        assert_int_equal(changed(count_at, many, 4), UINT32_MAX);
    const size_t second_at = first_at + sizeof(Segment);
    for (uint64_t count : {uint64_t{0}, uint64_t{2}, uint64_t{9}, UINT64_MAX})
        assert_int_equal(changed(first_at + 8, count, 8), segments_field);
    for (uint64_t rule : {uint64_t{0}, uint64_t{DTRAIN_RULE_DC_SGD}, uint64_t{1000}, UINT64_MAX})
        assert_int_equal(changed(second_at + 16, rule, 8), segments_field);
    assert_int_equal(changed(second_at, 2, 8), segments_field);
    assert_int_equal(changed(second_at + 24, 0, 8), segments_field); // FTRL divides by its rate
    assert_string_equal(field_name(segments_field), "segments");
}

void states_are_bounded(void **) {
    const std::vector<FunctionState> states = {{"sum", DTRAIN_F64, false},
                                               {std::string(31, 'a'), DTRAIN_U64, true}};
    std::string payload = encode_states(states);
    auto decodes = [](const std::string &bytes) {
        std::vector<FunctionState> back;
        return decode_states(bytes.data(), bytes.size(), back);
    };
    std::vector<FunctionState> back;
    assert_true(decode_states(payload.data(), payload.size(), back) && back == states);
    assert_true(decodes(""));
    for (size_t n = 1; n < payload.size(); ++n)
        assert_int_equal(decodes(payload.substr(0, n)), n == payload.size() / 2);
    std::string many;
    for (int i = 0; i < 9; ++i) many += payload.substr(0, payload.size() / 2);
    assert_false(decodes(many));
    for (size_t at : {0, 32, 36}) { // name, dtype, per_row
        std::string bad = payload;
        bad[at] = '\7';
        assert_false(decodes(bad));
    }
    assert_true(may_keep(params_of("f"), states));
    TableParams flat = params_of("f");
    flat.row_length = 0;
    assert_false(may_keep(flat, states));
}

// Writes over everything it is given, and succeeds when the first pushed number is 1.
Status scribble(void *user, const dtrain_function_batch_t *batch) {
    ++*static_cast<int *>(user);
    assert_int_equal(batch->struct_size, sizeof *batch);
    assert_int_equal(batch->params->row_length, 8);
    assert_string_equal(batch->params->function, "f");
    float first = 0;
    for (uint64_t r = 0; r < batch->count; ++r) {
        std::memcpy(&first, batch->rows[r].pushed, sizeof first);
        std::memset(batch->rows[r].values, 0x11, batch->dim * sizeof(float));
        std::memset(batch->rows[r].state[0], 0x22, batch->dim * sizeof(double));
        std::memset(batch->rows[r].state[1], 0x33, sizeof(uint64_t));
    }
    std::memset(batch->error, 'e', batch->error_size); // without an end
    return first == 1 ? DTRAIN_OK : first == 2 ? DTRAIN_ERR_LIMIT : 12345;
}

const dtrain_function_state_t scribbled[] = {{"a", DTRAIN_F64, 0}, {"b", DTRAIN_U64, 1}};

dtrain_function_t scribbler(int &calls) {
    dtrain_function_t function = {};
    function.struct_size = sizeof function;
    function.abi = DTRAIN_FUNCTION_ABI;
    function.name = "f";
    function.user = &calls;
    function.states = scribbled;
    function.state_count = 2;
    function.update = scribble;
    return function;
}

void what_fails_changes_nothing(void **) {
    int calls = 0;
    const dtrain_function_t function = scribbler(calls);
    TableParams params = params_of("f");
    params.states = states_of(function);
    for (uint32_t consistency : {DTRAIN_ASYNC, DTRAIN_BSP}) {
        params.consistency = consistency;
        auto shard = Shard::create(params, Range{8, 32}, &function);
        std::vector<float> w(32, 5), g(16, 2);
        std::vector<double> a(32, 6);
        const std::vector<uint64_t> b = {1, 2, 3, 4};
        shard->set({8, 32}, w.data());
        assert_int_equal(int(shard->set_state(0, {8, 32}, a.data())), int(Reason::none));
        assert_int_equal(int(shard->set_state(1, {8, 32}, b.data())), int(Reason::none));
        auto push = [&](float first) {
            g.assign(16, first);
            if (consistency == DTRAIN_ASYNC) return shard->push({16, 16}, g.data(), true);
            shard->collect(0, {16, 16}, g.data());
            return shard->apply({0, {0}, 1});
        };
        calls = 0;
        assert_int_equal(int(push(2)), int(Reason::told));
        assert_int_equal(calls, 1);
        assert_int_equal(shard->failure().status, DTRAIN_ERR_LIMIT);
        assert_true(shard->failure().text.size() < max_told);
        assert_int_equal(int(push(3)), int(Reason::told));
        assert_int_equal(shard->failure().status, DTRAIN_ERR_INVALID);
        assert_non_null(strstr(shard->failure().text.c_str(), "returned 12345"));
        assert_memory_equal(shard->at(8), w.data(), 32 * sizeof(float));
        assert_memory_equal(shard->state(0, {8, 32}).numbers, a.data(), 32 * sizeof(double));
        assert_memory_equal(shard->state(1, {8, 32}).numbers, b.data(), 4 * sizeof(uint64_t));
        assert_int_equal(shard->updates(), consistency == DTRAIN_ASYNC ? 0 : 2);
        assert_int_equal(int(push(1)), int(Reason::none));
        assert_memory_equal(shard->at(8), w.data(), 8 * sizeof(float)); // other rows stay
        assert_memory_not_equal(shard->at(16), w.data(), sizeof(float));
        assert_memory_not_equal(shard->at(28), w.data(), sizeof(float));
        assert_memory_equal(shard->at(32), w.data(), 8 * sizeof(float));
    }
}

void rows_stay_as_they_were(void **) {
    int calls = 0;
    const dtrain_function_t function = scribbler(calls);
    TableParams params = params_of("f");
    params.length = 0;
    params.dim = 8;
    params.row_length = 0;
    params.states = states_of(function);
    dtrain_function_t checked = function; // scribble() looks for a dense table's row_length
    checked.update = [](void *user, const dtrain_function_batch_t *batch) -> Status {
        dtrain_function_batch_t other = *batch;
        dtrain_table_params_t its = *batch->params;
        its.row_length = 8;
        other.params = &its;
        return scribble(user, &other);
    };
    SparseShard shard(params, &checked);
    const uint64_t keys[] = {7, 1, UINT64_MAX};
    std::vector<float> w(24, 5), g(24, 2);
    std::vector<double> a(24, 6);
    assert_int_equal(int(shard.set(keys, 3, w.data())), int(Reason::none));
    assert_int_equal(int(shard.set_state(0, keys, 3, a.data())), int(Reason::none));
    assert_int_equal(int(shard.push(keys, 3, g.data(), true)), int(Reason::told));
    assert_int_equal(calls, 1);
    assert_memory_equal(shard.gather(keys, 3)->at(0), w.data(), 24 * sizeof(float));
    assert_memory_equal(shard.gather_state(0, keys, 3)->at(0), a.data(), 24 * sizeof(double));
    assert_int_equal(shard.updates(), 0);
    g.assign(24, 1);
    assert_int_equal(int(shard.push(keys, 2, g.data(), true)), int(Reason::none));
    assert_memory_not_equal(shard.gather(keys, 1)->at(0), w.data(), sizeof(float));
    assert_memory_equal(shard.gather(keys + 2, 1)->at(0), w.data(), 8 * sizeof(float));
}

// A push that meets sums in several places: what was combined before the failure is taken back.
void a_push_is_combined_or_not(void **) {
    int calls = 0;
    dtrain_function_t function = scribbler(calls);
    function.state_count = 0;
    function.update = [](void *, const dtrain_function_batch_t *batch) -> Status {
        for (uint64_t r = 0; r < batch->count; ++r)
            std::memcpy(batch->rows[r].values, batch->rows[r].pushed, batch->dim * sizeof(float));
        return DTRAIN_OK;
    };
    function.aggregate = [](void *, const dtrain_function_batch_t *batch) -> Status {
        bool large = false;
        for (uint64_t r = 0; r < batch->count; ++r)
            for (uint64_t i = 0; i < batch->dim; ++i) {
                float &sum = static_cast<float *>(batch->rows[r].values)[i];
                sum += 10 * static_cast<const float *>(batch->rows[r].pushed)[i];
                large = large || sum > 1000;
            }
        return large ? DTRAIN_ERR_LIMIT : DTRAIN_OK;
    };
    TableParams params = params_of("f");
    params.consistency = DTRAIN_BSP;
    params.row_length = 0;
    auto shard = Shard::create(params, Range{0, 16}, &function);
    const float ones[] = {1, 1, 1, 1};
    const float bad[] = {1, 1, 1, 1, 7, 7, 7, 7, 666, 1, 1, 1};
    const float expected[] = {1, 1, 1, 11, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};
    assert_int_equal(int(shard->collect(0, {0, 4}, ones)), int(Reason::none));
    assert_int_equal(int(shard->collect(0, {8, 4}, ones)), int(Reason::none));
    assert_int_equal(int(shard->collect(0, {0, 12}, bad)), int(Reason::told));
    assert_int_equal(int(shard->collect(0, {3, 1}, ones)), int(Reason::none));
    assert_int_equal(int(shard->apply({0, {0}, 2})), int(Reason::none));
    assert_memory_equal(shard->at(0), expected, sizeof expected);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(descriptions_are_bounded), cmocka_unit_test(segments_are_bounded),
        cmocka_unit_test(states_are_bounded),       cmocka_unit_test(what_fails_changes_nothing),
        cmocka_unit_test(rows_stay_as_they_were),   cmocka_unit_test(a_push_is_combined_or_not),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
