// The registry of algorithms, and all that is derived from it: choices of the option, names between
// ranks, documents.
// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"
#include "check.h"
#include "collectives/algorithms/build.h"
#include "collectives/communicator/setup.h"

#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

using namespace dtrain;
using namespace dtrain::collectives;

namespace {

void descriptions_are_complete(void **) {
    std::set<std::string> names;
    for (Algorithm algorithm : all_algorithms()) {
        const Description &described = description(algorithm);
        const std::string name = algorithm_name(algorithm);
        assert_true(names.insert(name).second);
        assert_true(name.size() < max_algorithm_name);
        assert_true(described.about[0] != 0 && described.source != nullptr);
        assert_false(described.methods.empty());
        std::set<Kind> kinds;
        for (const Method &method : described.methods) {
            assert_true(kinds.insert(method.kind).second);
            assert_non_null(method.build);
        }
    }
    // What is done where nothing else is possible.
    for (int kind = 0; kind < all_kinds; kind++) {
        const Method *method = find_method(Kind(kind), Algorithm::direct, INT32_MAX, false);
        assert_true(method != nullptr && method->cost != nullptr);
    }
}

const OptionSpec &option() {
    for (const OptionSpec &spec : option_table())
        if (spec.key == std::string("allreduce.algorithm")) return spec;
    fail_msg("there is no option allreduce.algorithm");
    std::abort();
}

void option_has_all_as_choices(void **) {
    std::string choices = "auto|window", listed = "window (as auto)";
    Options options;
    for (Algorithm algorithm : all_algorithms()) {
        choices += std::string("|") + algorithm_name(algorithm);
        listed += std::string(", ") + algorithm_name(algorithm);
        assert_int_equal(options.set("allreduce.algorithm", algorithm_name(algorithm)), DTRAIN_OK);
    }
    assert_string_equal(option().allowed, choices.c_str());
    if (!std::string(option().text).ends_with(listed)) fail_msg("the text is: %s", option().text);
    assert_int_equal(options.set("allreduce.algorithm", "rign"), DTRAIN_ERR_INVALID);
    assert_non_null(strstr(error_text(), ("one of " + choices).c_str()));
    assert_non_null(strstr(error_text(), "the nearest is \"ring\""));
}

Setup chosen(const char *name) {
    Setup setup = {};
    std::snprintf(setup.algorithm, sizeof setup.algorithm, "%s", name);
    return setup;
}

void ranks_are_told_a_name(void **) {
    std::optional<Algorithm> forced = Algorithm::direct;
    assert_int_equal(find_forced(chosen(""), forced), DTRAIN_OK);
    assert_false(forced.has_value());
    for (Algorithm algorithm : all_algorithms()) {
        assert_int_equal(find_forced(chosen(algorithm_name(algorithm)), forced), DTRAIN_OK);
        assert_true(forced == algorithm);
    }
}

// Of another version of the library, or of a rank 0 that sends garbage.
void an_unknown_name_is_an_error(void **) {
    std::optional<Algorithm> forced = Algorithm::ring;
    assert_int_equal(find_forced(chosen("double_trees"), forced), DTRAIN_ERR_VERSION);
    assert_false(forced.has_value());
    for (const char *part : {"rank 0 chose the algorithm \"double_trees\"", "direct, ring, ",
                             "the nearest is \"double_tree\"", "use the same version on all ranks"})
        if (strstr(error_text(), part) == nullptr) fail_msg("no \"%s\" in: %s", part, error_text());
    Setup endless = {};
    for (char &c : endless.algorithm) c = 'x';
    assert_int_equal(find_forced(endless, forced), DTRAIN_ERR_VERSION);
}

// A row of the table in docs/TUNING.md.
std::string row_of(Algorithm algorithm) {
    const Description &described = description(algorithm);
    std::string kinds;
    for (int kind = 0; kind < kind_count; kind++)
        if (supports(Kind(kind), algorithm, 2, true))
            kinds += (kinds.empty() ? "" : ", ") + std::string(kind_name(Kind(kind)));
    std::string about = described.about;
    if (described.source[0] != 0) about += std::string(" (") + described.source + ")";
    return std::string("| `") + algorithm_name(algorithm) + "` | " + about + " | " + kinds + " |\n";
}

void documents_have_all(void **) {
    std::ifstream page(SOURCE_FOLDER "/docs/TUNING.md");
    std::stringstream text;
    text << page.rdbuf();
    for (Algorithm algorithm : all_algorithms())
        if (text.str().find(row_of(algorithm)) == std::string::npos)
            fail_msg("docs/TUNING.md lacks the row\n%s", row_of(algorithm).c_str());
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(descriptions_are_complete), cmocka_unit_test(option_has_all_as_choices),
        cmocka_unit_test(ranks_are_told_a_name),     cmocka_unit_test(an_unknown_name_is_an_error),
        cmocka_unit_test(documents_have_all),
    };
    return cmocka_run_group_tests_name("algorithms", tests, nullptr, nullptr);
}
