// The least: ranks meet, add up, part.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

#include <cstring>

namespace {

void sums(int size, const ranks::Options &options) {
    ranks::run(size, options, [size](int rank, dtrain_comm_t *comm) {
        REQUIRE(dtrain_comm_rank(comm) == rank && dtrain_comm_size(comm) == size);
        for (size_t count : {1u, 7u, 1000u, 20000u, 300000u}) {
            std::vector<float> data(count, float(rank + 1));
            OK(dtrain_allreduce(comm, data.data(), data.data(), count, DTRAIN_F32, DTRAIN_SUM,
                                nullptr, nullptr));
            for (float x : data) REQUIRE(x == float(size * (size + 1) / 2));
        }
        OK(dtrain_barrier(comm, nullptr, nullptr));
    });
}

void alone(void **) { sums(1, {}); }
void over_shm(void **) {
    for (int n : {2, 3, 4, 8}) sums(n, {});
}
void over_tcp(void **) {
    for (int n : {2, 3, 5}) sums(n, {{"transports", "tcp"}});
}

void tells_its_devices(void **) {
    dtrain_options_t *options;
    dtrain_context_t *context;
    char text[8192];
    OK(dtrain_options_create(&options));
    OK(dtrain_options_set(options, "transports", "tcp"));
    OK(dtrain_options_set(options, "tcp.interface", "lo"));
    OK(dtrain_context_create(DTRAIN_API_VERSION, options, &context));
    REQUIRE(dtrain_context_describe(context, text, sizeof text) < sizeof text);
    REQUIRE(std::strstr(text, R"("name": "tcp", "device": "lo", )") != nullptr);
    OK(dtrain_context_destroy(context));
    dtrain_options_destroy(options);
}

void tells_why_not(void **) {
    dtrain_options_t *options;
    dtrain_context_t *context;
    char text[1024];
    OK(dtrain_options_create(&options));
    OK(dtrain_options_set(options, "plugin.path", PLUGIN_FOLDER "/loader"));
    OK(dtrain_options_set(options, "plugin.toy.spoil", "list")); // it finds no device
    OK(dtrain_options_set(options, "transports", "toy"));
    FAILS(DTRAIN_ERR_CONFIG, dtrain_context_create(DTRAIN_API_VERSION, options, &context));
    dtrain_last_error(text, sizeof text);
    REQUIRE(std::strstr(text, "transport toy: this machine has no device for it") != nullptr);
    OK(dtrain_options_set(options, "transports", "toy,shm")); // the user allows another one
    OK(dtrain_context_create(DTRAIN_API_VERSION, options, &context));
    OK(dtrain_context_destroy(context));
    dtrain_options_destroy(options);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(alone), cmocka_unit_test(over_shm),
                                cmocka_unit_test(over_tcp), cmocka_unit_test(tells_its_devices),
                                cmocka_unit_test(tells_why_not)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
