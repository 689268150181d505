// Which network cards are used: what the kernel tells of them, from a folder that looks like /sys.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "rdm/nics.h"
#include "temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <sched.h>

using namespace dtrain::rdm;

namespace {

void write(const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text << "\n";
}

Nic nic(const char *name, const char *network, bool near = true, const char *state = "up") {
    Nic made;
    made.name = name;
    made.network = network;
    made.near = near;
    made.state = state;
    return made;
}

// The names of the chosen ones, in the order of their rails.
std::string chosen(std::vector<Nic> nics, const Choice &choice) {
    std::string names;
    choose(nics, choice);
    for (const Nic &c : nics) {
        assert_true(!c.why.empty());
        if (c.chosen) names += (names.empty() ? "" : ",") + c.name;
    }
    return names;
}

Choice share(int rank, int size) {
    Choice choice;
    choice.local_rank = rank;
    choice.local_size = size;
    return choice;
}

void facts_of_an_rdma_device(void **) {
    TemporaryFolder folder;
    const std::string root = folder.name, device = root + "/class/infiniband/mlx5_0";
    cpu_set_t own;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    int first = 0, free = 0; // a CPU of ours, and one that is not
    while (!CPU_ISSET(first, &own)) first++;
    while (CPU_ISSET(free, &own)) free++;
    write(device + "/ports/1/state", "4: ACTIVE");
    write(device + "/ports/1/rate", "200 Gb/sec (4X HDR)");
    write(device + "/device/numa_node", "1");
    write(device + "/device/local_cpulist", std::to_string(free));
    Nic found = nic("mlx5_0", "");
    found.look_up(root);
    assert_string_equal(found.state.c_str(), "up");
    assert_int_equal(found.numa_node, 1);
    assert_true(found.bandwidth_bps == 25'000'000'000);
    assert_false(found.near);
    write(device + "/device/local_cpulist",
          std::to_string(free) + "," + std::to_string(first) + "-" + std::to_string(first + 1));
    write(device + "/ports/1/state", "1: DOWN");
    found.look_up(root);
    assert_true(found.near);
    assert_string_equal(found.state.c_str(), "down");
    Nic datagrams = nic("mlx5_0-dgram", "");
    datagrams.look_up(root);
    assert_int_equal(datagrams.numa_node, 1);
    Nic unknown = nic("none", "", true, "unknown");
    unknown.look_up(root);
    assert_int_equal(unknown.numa_node, -1);
    assert_true(unknown.near && unknown.bandwidth_bps == 0 && unknown.state == "unknown");
}

void facts_of_an_interface(void **) {
    TemporaryFolder folder;
    const std::string root = folder.name;
    write(root + "/class/net/eth0/operstate", "up");
    write(root + "/class/net/eth0/speed", "25000");
    Nic found = nic("eth0", "");
    found.look_up(root);
    assert_true(found.bandwidth_bps == 3'125'000'000);
    write(root + "/class/net/eth0/operstate", "down");
    write(root + "/class/net/eth0/speed", "-1");
    found.look_up(root);
    assert_true(found.state == "down" && found.bandwidth_bps == 0);
}

void why_a_device_cannot_be_used(void **) {
    TemporaryFolder folder;
    const std::string root = folder.name;
    assert_string_equal(unusable_devices(root, root).c_str(), "");
    write(root + "/class/infiniband/rxe0/ports/1/state", "1: DOWN");
    write(root + "/class/infiniband_verbs/uverbs0/dev", "231:192");
    assert_string_equal(
        unusable_devices(root, root).c_str(),
        ("rxe0 is down, " + root + "/infiniband/uverbs0: No such file or directory").c_str());
}

void nics_of_one_network_are_shared(void **) {
    const std::vector<Nic> four = {nic("a", "n"), nic("b", "n"), nic("c", "n", false),
                                   nic("d", "n", false)};
    assert_string_equal(chosen(four, {}).c_str(), "a,b,c,d"); // nobody else is known here
    assert_string_equal(chosen(four, share(0, 4)).c_str(), "a");
    assert_string_equal(chosen(four, share(1, 4)).c_str(), "b");
    assert_string_equal(chosen(four, share(2, 4)).c_str(), "a"); // it is near to the same cores
    assert_string_equal(chosen(four, share(0, 2)).c_str(), "a,b");
    assert_string_equal(chosen(four, share(9, 16)).c_str(), "b");
    const std::vector<Nic> far = {nic("a", "n", false), nic("b", "n", false)};
    assert_string_equal(chosen(far, share(1, 2)).c_str(), "b");
    const std::vector<Nic> down = {nic("a", "n", true, "down"), nic("b", "n", false)};
    assert_string_equal(chosen(down, share(0, 2)).c_str(), "b");
    assert_string_equal(chosen(down, {}).c_str(), "b");
    assert_string_equal(chosen({nic("a", "n", true, "down")}, {}).c_str(), "");
}

// On all hosts in the same order, whatever their cards are called and which are near.
void networks_have_a_rail_each(void **) {
    std::vector<Nic> nics = {nic("a", "10.2.0.0/16", true), nic("b", "10.1.0.0/16", false),
                             nic("c", "10.3.0.0/16", true)};
    assert_string_equal(chosen(nics, share(1, 8)).c_str(), "b,a,c");
    Choice routed = share(1, 8);
    nics[2].address = routed.route = "10.3.0.7";
    assert_string_equal(chosen(nics, routed).c_str(), "c,b,a");
}

void the_user_has_the_last_word(void **) {
    Choice choice = share(3, 4);
    choice.option = "ofi.domain";
    choice.named = "c,a";
    std::vector<Nic> nics = {nic("a", "n"), nic("b", "n"), nic("c", "m", false)};
    assert_string_equal(chosen(nics, choice).c_str(), "c,a");
    choose(nics, choice);
    assert_string_equal(nics[2].why.c_str(), "not named by option ofi.domain");
}

void one_that_leads_to_the_others(void **) {
    Choice choice;
    choice.single = true;
    std::vector<Nic> nics = {nic("lo", "n"), nic("docker0", "d"), nic("eth0", "e")};
    assert_string_equal(chosen(nics, choice).c_str(), "docker0");
    nics[2].address = choice.route = "10.0.0.4";
    assert_string_equal(chosen(nics, choice).c_str(), "eth0");
    assert_string_equal(chosen({nic("lo", "n")}, choice).c_str(), "lo");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(facts_of_an_rdma_device),
        cmocka_unit_test(facts_of_an_interface),
        cmocka_unit_test(why_a_device_cannot_be_used),
        cmocka_unit_test(nics_of_one_network_are_shared),
        cmocka_unit_test(networks_have_a_rail_each),
        cmocka_unit_test(the_user_has_the_last_word),
        cmocka_unit_test(one_that_leads_to_the_others),
    };
    return cmocka_run_group_tests_name("nics", tests, nullptr, nullptr);
}
