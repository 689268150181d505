// Ranks of two builds must not choose differently: a change of what is chosen gets another number.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "base/hash.h"
#include "collectives/communicator/setup.h"
#include "collectives/cost/choose.h"
#include "networks.h"

#include <cinttypes>
#include <cstring>
#include <string>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

// Of the choices that the rules of this number make.
constexpr uint32_t number = 1;
constexpr uint64_t choices = 0x05898215acd2aa63;

uint64_t hash_of_choices(double factor) {
    uint64_t hash = 0;
    for (int kind = 0; kind < kind_count; kind++)
        for (const int32_t size : {2, 3, 4, 7, 8, 13, 16, 64, 100, 1024})
            for (uint64_t bytes = 4; bytes <= (1 << 28); bytes *= 4)
                for (NetworkModel model : networks)
                    for (const double shared : {1, 4}) {
                        model.ranks_per_core = shared;
                        model.latency_ns *= factor;
                        const CollectiveSpec call = call_of(Kind(kind), size, bytes);
                        Algorithm algorithm = Algorithm::direct;
                        assert_int_equal(choose(call, model, std::nullopt, algorithm), DTRAIN_OK);
                        const uint64_t piece = piece_bytes(call, algorithm, model);
                        hash = mix(hash + uint64_t(algorithm) + (piece << 8));
                    }
    return hash;
}

void other_choices_have_another_number(void **) {
    const uint64_t hash = hash_of_choices(1);
    if (hash != choices)
        fail_msg("the choices are not those of rules %u: set choice_rules (choose.h), and the "
                 "number here, to %u, and their hash to 0x%016" PRIx64,
                 number, number + 1, hash);
    assert_int_equal(choice_rules, number);
    assert_true(hash_of_choices(2) != choices); // a change would be seen
}

void ranks_with_other_rules_make_no_communicator(void **) {
    Setup setup = {};
    setup.choice_rules = choice_rules;
    assert_int_equal(check_rules(setup), DTRAIN_OK);
    setup.choice_rules++;
    assert_int_equal(check_rules(setup), DTRAIN_ERR_VERSION);
    const std::string both = "by rules " + std::to_string(choice_rules + 1) +
                             ", this rank's by rules " + std::to_string(choice_rules);
    assert_non_null(std::strstr(error_text(), both.c_str()));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(other_choices_have_another_number),
        cmocka_unit_test(ranks_with_other_rules_make_no_communicator),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
