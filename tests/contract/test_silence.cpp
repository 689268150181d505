// A network that loses messages without a word: all ranks live and wait, and are told so.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"

namespace {

constexpr int size = 3;

ranks::Options over_faults(const char *drop) {
    return {{"plugin.path", PLUGIN_FOLDER}, {"transports", "fault"},
            {"plugin.fault.over", "tcp"},   {"plugin.fault.after", "60"},
            {"plugin.fault.drop", drop},    {"stall.limit", "500ms"}};
}

void what_is_lost_ends_on_all_ranks(void **) {
    ranks::run_each(
        size, 0, [](int rank) { return over_faults(rank == 1 ? "1000" : "0"); },
        [](int, dtrain_context_t *, dtrain_comm_t *comm) {
            std::vector<float> data(1000, 1);
            dtrain_status_t status = DTRAIN_OK;
            while (status == DTRAIN_OK)
                status = dtrain_allreduce(comm, data.data(), data.data(), data.size(), DTRAIN_F32,
                                          DTRAIN_MAX, nullptr, nullptr);
            const std::string text = ranks::last_error();
            std::printf("%s\n", text.c_str());
            REQUIRE(status == DTRAIN_ERR_TIMEOUT);
            REQUIRE(text.find("stall.limit") != std::string::npos);
            REQUIRE(text.find("waits for rank") != std::string::npos);
        });
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lost_ends_on_all_ranks),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
