// Functions, files and tables of functions that are refused.
// SPDX-License-Identifier: Apache-2.0
#include "contract/function_case.h"

using namespace functions;

namespace {

void tables_without_a_function(void **) {
    for (int servers : {0, 2})
        ranks::run(2, servers, loaded, [&](int, dtrain_comm_t *comm) {
            dtrain_table_t *table = nullptr;
            dtrain_table_params_t params = dense(DTRAIN_ASYNC, "nowhere");
            FAILS(DTRAIN_ERR_NOT_FOUND, dtrain_table_create(comm, "w", &params, &table));
            REQUIRE(says("\"nowhere\"") && says("it has: clipped_adagrad"));
            REQUIRE(says("ps.functions") && says("dtrain_function_register"));
            params.function = nullptr;
            FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "w", &params, &table));
            REQUIRE(says("function"));
            for (const std::string &bad :
                 {std::string("a b"), std::string("a/b"), std::string(64, 'a'), std::string()}) {
                params.function = bad.c_str();
                FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "w", &params, &table));
            }
            params.rule = DTRAIN_RULE_SGD;
            params.function = "clipped_adagrad";
            FAILS(DTRAIN_ERR_INVALID, dtrain_table_create(comm, "w", &params, &table));
            // A type that the function itself refuses, at the first push.
            params = dense(DTRAIN_ASYNC, "clipped_adagrad");
            params.dtype = DTRAIN_F64;
            table = make(comm, "w", params);
            const double g[row_length] = {1};
            FAILS(DTRAIN_ERR_UNSUPPORTED,
                  dtrain_table_push(table, 0, row_length, g, nullptr, nullptr));
            REQUIRE(says("only tables of F32"));
            OK(dtrain_table_destroy(table));
        });
}

void another_function(void **) {
    ranks::run_with_contexts(3, {}, [](int rank, dtrain_context_t *context, dtrain_comm_t *comm) {
        static Seen seen;
        const dtrain_function_t one = function_of(seen, "one"), two = function_of(seen, "two");
        OK(dtrain_function_register(context, &one));
        OK(dtrain_function_register(context, &two));
        dtrain_table_params_t params = dense(DTRAIN_ASYNC, rank == 1 ? "two" : "one");
        dtrain_table_t *table = nullptr;
        FAILS(DTRAIN_ERR_MISMATCH, dtrain_table_create(comm, "w", &params, &table));
        REQUIRE(says("rank 0 gives function one, rank 1 function two"));
    });
}

void refused_functions(void **) {
    dtrain_context_t *context = ranks::make_context({});
    static Seen seen;
    const dtrain_function_t good = function_of(seen);
    auto refused = [&](dtrain_status_t status, const char *text, auto &&change) {
        dtrain_function_t function = good;
        change(function);
        FAILS(status, dtrain_function_register(context, &function));
        if (!says(text)) fprintf(stderr, "%s\n", ranks::last_error().c_str());
        REQUIRE(says(text));
    };
    using F = dtrain_function_t;
    FAILS(DTRAIN_ERR_INVALID, dtrain_function_register(context, nullptr));
    FAILS(DTRAIN_ERR_INVALID, dtrain_function_register(nullptr, &good));
    refused(DTRAIN_ERR_VERSION, "ABI 1, this library serves 2", [](F &f) { f.abi = 1; });
    refused(DTRAIN_ERR_VERSION, "ABI 3, this library serves 2", [](F &f) { f.abi = 3; });
    refused(DTRAIN_ERR_INVALID, "struct_size is 4", [](F &f) { f.struct_size = 4; });
    refused(DTRAIN_ERR_INVALID, "struct_size is 24", [](F &f) { f.struct_size = 24; });
    refused(DTRAIN_ERR_INVALID, "named", [](F &f) { f.name = "a b"; });
    refused(DTRAIN_ERR_INVALID, "named", [](F &f) { f.name = nullptr; });
    refused(DTRAIN_ERR_INVALID, "update()", [](F &f) { f.update = nullptr; });
    refused(DTRAIN_ERR_INVALID, "states", [](F &f) { f.state_count = 9; });
    refused(DTRAIN_ERR_INVALID, "NULL", [](F &f) { f.states = nullptr; });
    refused(DTRAIN_ERR_INVALID, "reserved", [](F &f) { f.reserved = 1; });
    static dtrain_function_state_t states[2];
    auto with = [&](const char *text, const char *name, uint32_t dtype, uint32_t per_row,
                    const char *second = "b") {
        states[0] = {name, dtype, per_row};
        states[1] = {second, DTRAIN_F32, 0};
        refused(DTRAIN_ERR_INVALID, text, [](F &f) { f.states = states; });
    };
    with("named", "values", DTRAIN_F32, 0);
    with("named", "Sum", DTRAIN_F32, 0);
    with("named", nullptr, DTRAIN_F32, 0);
    with("named", std::string(32, 'a').c_str(), DTRAIN_F32, 0);
    with("F32, F64 or U64", "a", DTRAIN_I8, 0);
    with("per_row", "a", DTRAIN_F32, 2);
    with("two states", "b", DTRAIN_F32, 0);
    OK(dtrain_function_register(context, &good));
    OK(dtrain_context_destroy(context));
}

// A file that is not fit for it is an error where the server starts.
void refused_files(void **) {
    auto refused = [&](const std::string &files, dtrain_status_t status, const char *text) {
        dtrain_context_t *context = ranks::make_context({{"ps.functions", files}});
        dtrain_comm_params_t params;
        DTRAIN_INIT(&params);
        params.size = 1;
        dtrain_comm_t *comm = nullptr;
        OK(dtrain_comm_create(context, "tcp://127.0.0.1:0", &params, &comm));
        dtrain_table_t *table = nullptr;
        dtrain_table_params_t its = dense(DTRAIN_ASYNC, "clipped_adagrad");
        for (int i = 0; i < 2; i++) { // and again, the same
            FAILS(status, dtrain_table_create(comm, "w", &its, &table));
            REQUIRE(says("ps.functions"));
            if (!says(text)) fprintf(stderr, "%s\n", ranks::last_error().c_str());
            REQUIRE(says(text));
        }
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
    };
    refused("relative.so", DTRAIN_ERR_CONFIG, "\"relative.so\" is not an absolute path");
    refused("/nowhere.so", DTRAIN_ERR_CONFIG, "/nowhere.so");
    const std::string good = plugins + "/libclipped_adagrad.so";
    refused(good + ":" + plugins + "/libfunction_old.so", DTRAIN_ERR_VERSION,
            "does not serve function ABI 2");
    refused(plugins + "/libfunction_new.so", DTRAIN_ERR_VERSION, "ABI 8, this library serves 2");
    refused(plugins + "/libdtrain_transport_queue.so", DTRAIN_ERR_CONFIG,
            "does not export dtrain_function_query()");
    refused(plugins + "/libfunction_endless.so", DTRAIN_ERR_INVALID, "two functions \"plus\"");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(tables_without_a_function),
        cmocka_unit_test(another_function),
        cmocka_unit_test(refused_functions),
        cmocka_unit_test(refused_files),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
