// Checkpoints on a disk that loses power at any moment of a save: in every state in which it may be
// then (crash/disk_model.h), each complete checkpoint is one that was saved, to the bit, the newest
// one is that before the save or the new one, and after the save the new one; the next save works,
// and removes what was left. DTRAIN_TEST_ALL=1: all states; otherwise some, by DTRAIN_TEST_SEED.
// SPDX-License-Identifier: Apache-2.0
#include "crash_scenario.h"

#include <cstdlib>
#include <set>
#include <utility>

using namespace dtrain::ps;
namespace fs = std::filesystem;
using crash::Counts;
using crash::DiskCall;
using crash::DiskLog;
using Kind = DiskCall::Kind;

namespace {

TableParams dense() {
    TableParams params;
    params.length = 150;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_ADAM;
    return params;
}
TableParams sparse() {
    TableParams params;
    params.dim = 3;
    params.dtype = DTRAIN_F32;
    params.rule = DTRAIN_RULE_ADAGRAD;
    return params;
}

constexpr uint64_t rows = 20;

void push(const StoredTables &tables, float g) {
    for (const auto &table : tables) table->push(g, is_sparse(table->params) ? rows : 0);
}
StoredTables one_table(uint32_t servers) {
    return {std::make_shared<StoredTable>("a/b c", dense(), servers)};
}
StoredTables two_tables(uint32_t servers) {
    return {std::make_shared<StoredTable>("dense", dense(), servers),
            std::make_shared<StoredTable>("rows", sparse(), servers)};
}
void must(dtrain::Status status) {
    if (status != DTRAIN_OK) fail_msg("%s", dtrain::error_text());
}
// Saves at the steps 1 to `last`, and changes all tables after each.
auto save_up_to(uint64_t last) {
    return [last](Saver &saver, const StoredTables &tables) {
        push(tables, 1);
        for (uint64_t step = 1; step <= last; step++) {
            must(saver.save(tables, step));
            push(tables, float(step));
        }
    };
}

uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}
const bool all = from_environment("DTRAIN_TEST_ALL", 0) != 0;
const uint64_t seed = from_environment("DTRAIN_TEST_SEED", 1);
Counts total;

// How few of the kills, and of the states, are taken without DTRAIN_TEST_ALL; then it is 14 times
// as many kills, and all states.
struct Share {
    size_t kills;
    uint64_t states, states_after_kill;
};
#ifdef __SANITIZE_ADDRESS__ // slow
constexpr Share one_server = {28, 8, 100}, several_servers = {56, 40, 200};
constexpr uint64_t least_checked = 150;
#else
constexpr Share one_server = {4, 1, 20}, several_servers = {28, 6, 30};
constexpr uint64_t least_checked = 300;
#endif

// Checks the states after a power loss in the middle of the save, and in the middle of the save
// that follows a kill.
void lose_power(const Scenario &scenario, const Share &one_in) {
    const crash::Extent extent = all ? crash::Extent{10, 50} : crash::Extent{8, 4};
    const Effort first = {extent, seed, all ? 1 : one_in.states},
                 second = {extent, seed, all ? 1 : one_in.states_after_kill};
    const size_t stride = all ? std::max<size_t>(one_in.kills / 14, 1) : one_in.kills;
    const DiskLog log = scenario.log(seed);
    Counts counts;
    assert_string_equal(scenario.lose_power(log, first, counts).c_str(), "");
    for (size_t killed = seed % stride; killed <= log.size(); killed += stride) {
        const std::string why = scenario.lose_power_after_kill(log, killed, second, counts);
        if (!why.empty()) fail_msg("%s; before that killed after %zu calls", why.c_str(), killed);
    }
    print_message("%llu crashes, %llu choices of what is kept, %llu states, %llu checked\n",
                  static_cast<unsigned long long>(counts.crashes),
                  static_cast<unsigned long long>(counts.choices),
                  static_cast<unsigned long long>(counts.states),
                  static_cast<unsigned long long>(counts.checked));
    total += counts;
}

void the_first_one(void **) {
    lose_power(Scenario({1, 1, one_table, 1, 1}, save_up_to(0)), one_server);
}
void over_an_older_one(void **) {
    lose_power(Scenario({1, 1, one_table, 1, 2}, save_up_to(1)), one_server);
}
void of_three_servers(void **) {
    lose_power(Scenario({3, 1, one_table, 1, 2}, save_up_to(1)), several_servers);
}
void dense_and_sparse_tables(void **) {
    lose_power(Scenario({2, 1, two_tables, 2, 2}, save_up_to(1)), several_servers);
}
void several_are_kept(void **) {
    lose_power(Scenario({1, 2, one_table, 1, 5}, save_up_to(4)), one_server);
}
// Of the sparse table, which is not saved again.
void the_last_of_another_table(void **) {
    const auto prepare = [](Saver &saver, const StoredTables &tables) {
        save_up_to(1)(saver, tables);
        must(saver.save({tables[0]}, 2));
        push(tables, 2);
    };
    lose_power(Scenario({1, 1, two_tables, 1, 3}, prepare), one_server);
}
void after_a_roll_back(void **) {
    const auto prepare = [](Saver &saver, const StoredTables &tables) {
        Manifest at;
        save_up_to(2)(saver, tables);
        must(saver.restore(tables, at, 1));
        push(tables, 3);
    };
    CrashedJob job = {1, 2, one_table, 1, 2};
    job.rolls_back = true;
    lose_power(Scenario(job, prepare), one_server);
}

// The same library with a fault: what it would have called.
struct Planted {
    const char *fault;
    DiskLog (*log)(const DiskLog &);
};
template <class Forgets> DiskLog without(const DiskLog &log, Forgets &&forgets) {
    DiskLog rest;
    for (const DiskCall &call : log)
        if (!forgets(call)) rest.push_back(call);
    return rest;
}
bool is_manifest(const DiskCall &call) { return call.to.ends_with("/manifest.json"); }

const Planted planted[] = {
    {"files are not synced",
     [](const DiskLog &log) {
         return without(log, [](const DiskCall &call) { return call.kind == Kind::sync; });
     }},
    {"the manifest is not synced",
     [](const DiskLog &log) {
         return without(log, [](const DiskCall &call) {
             return call.kind == Kind::sync && call.path.ends_with("/manifest.json.tmp");
         });
     }},
    {"folders are not synced",
     [](const DiskLog &log) {
         return without(log, [](const DiskCall &call) { return call.kind == Kind::sync_folder; });
     }},
    {"folders are not synced after a rename",
     [](const DiskLog &log) {
         return without(log, [last = Kind::other](const DiskCall &call) mutable {
             return std::exchange(last, call.kind) == Kind::rename &&
                    call.kind == Kind::sync_folder;
         });
     }},
    {"folders are not synced after a removal",
     [](const DiskLog &log) {
         return without(log, [last = Kind::other](const DiskCall &call) mutable {
             return std::exchange(last, call.kind) == Kind::remove &&
                    call.kind == Kind::sync_folder;
         });
     }},
    {"files are renamed before they are synced",
     [](const DiskLog &log) {
         DiskLog other = log;
         for (size_t i = 0; i + 2 < other.size(); i++)
             if (other[i].kind == Kind::sync && other[i + 2].kind == Kind::rename)
                 std::rotate(&other[i], &other[i + 2], &other[i + 2] + 1); // sync and close later
         return other;
     }},
    {"the old one is removed before the manifest is durable",
     [](const DiskLog &log) {
         DiskLog other = log;
         const auto begin = std::find_if(other.begin(), other.end(), is_manifest);
         const auto end = std::find_if(begin, other.end(), [](const DiskCall &call) {
             return call.kind == Kind::remove; // of the old manifest
         });
         std::rotate(begin, end, other.end());
         return other;
     }},
};

void planted_faults_are_found(void **) {
    const Scenario scenario({1, 1, one_table, 1, 2}, save_up_to(1));
    const DiskLog log = scenario.log(seed);
    for (const Planted &plant : planted) {
        Counts counts;
        const Effort effort = {{8, 20}, seed, 1};
        const DiskLog other = plant.log(log);
        const std::string why = scenario.lose_power(other, effort, counts);
        if (why.empty()) fail_msg("not found: %s", plant.fault);
        print_message("%s: %s\n", plant.fault, why.c_str());
    }
}

// A folder in which this process has changed nothing: a killed one may have.
DiskLog without_syncs_for_others(const DiskLog &log) {
    std::set<std::string> changed;
    return without(log, [&](const DiskCall &call) {
        if (call.kind == Kind::sync_folder) return changed.erase(call.path) == 0;
        if (call.kind != Kind::write) changed.insert(fs::path(call.path).parent_path());
        return false;
    });
}
void a_sync_that_only_matters_after_a_kill_is_found(void **) {
    const Scenario scenario({1, 1, one_table, 1, 2}, save_up_to(1));
    const DiskLog log = scenario.log(seed);
    std::string why;
    Counts counts;
    for (size_t killed = 0; killed <= log.size() && why.empty(); killed++)
        why = scenario.lose_power_after_kill(log, killed, {{8, 20}, seed, 1}, counts,
                                             without_syncs_for_others);
    assert_string_not_equal(why.c_str(), "");
    print_message("%s\n", why.c_str());
}

void enough_states(void **) {
    print_message("%llu states in all, %llu of them checked (DTRAIN_TEST_SEED=%llu)\n",
                  static_cast<unsigned long long>(total.states),
                  static_cast<unsigned long long>(total.checked),
                  static_cast<unsigned long long>(seed));
    assert_true(total.checked >= (all ? 100'000 : least_checked));
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one),
        cmocka_unit_test(over_an_older_one),
        cmocka_unit_test(of_three_servers),
        cmocka_unit_test(dense_and_sparse_tables),
        cmocka_unit_test(several_are_kept),
        cmocka_unit_test(the_last_of_another_table),
        cmocka_unit_test(after_a_roll_back),
        cmocka_unit_test(planted_faults_are_found),
        cmocka_unit_test(a_sync_that_only_matters_after_a_kill_is_found),
        cmocka_unit_test(enough_states),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
