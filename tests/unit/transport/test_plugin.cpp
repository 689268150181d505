// Finding and refusing plugins.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "temporary_folder.h"
#include "transport/plugin.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

using namespace dtrain;
using namespace dtrain::transport;

namespace {

const char *const folder = PLUGIN_FOLDER "/loader";

Status find(const char *name, const std::string &path, const dtrain_tp_plugin_t *&out) {
    set_error_text("");
    out = nullptr;
    return find_plugin(name, path, out);
}

void assert_text(const char *part) {
    if (std::strstr(error_text(), part) == nullptr)
        fail_msg("\"%s\" does not tell \"%s\"", error_text(), part);
}

void refuse(const char *name, Status expected, const char *why) {
    const dtrain_tp_plugin_t *plugin;
    assert_int_equal(find(name, folder, plugin), expected);
    assert_null(plugin);
    assert_text((std::string(folder) + "/libdtrain_transport_" + name + ".so").c_str());
    assert_text(why);
}

void test_builtin(void **) {
    for (const char *name : {"tcp", "shm"}) {
        const dtrain_tp_plugin_t *plugin;
        assert_int_equal(find(name, "", plugin), DTRAIN_OK);
        assert_string_equal(plugin->name, name);
        assert_int_equal(plugin->abi, DTRAIN_TP_ABI);
        assert_true(DTRAIN_TP_HAS(plugin->ops, progress));
    }
    for (const dtrain_tp_plugin_t *plugin : builtin_plugins()) {
        const dtrain_tp_plugin_t *found;
        assert_int_equal(find(plugin->name, "", found), DTRAIN_OK);
        assert_ptr_equal(found, plugin);
    }
}

void test_file(void **) {
    const dtrain_tp_plugin_t *plugin, *again;
    assert_int_equal(find("toy", folder, plugin), DTRAIN_OK);
    assert_string_equal(plugin->name, "toy");
    assert_int_equal(find("toy", std::string("/nonexistent::") + folder + ":", again), DTRAIN_OK);
    assert_ptr_equal(again, plugin); // loaded once
}

void test_file_before_builtin(void **) {
    const dtrain_tp_plugin_t *plugin, *builtin;
    assert_int_equal(find("tcp", "", builtin), DTRAIN_OK);
    assert_int_equal(find("tcp", folder, plugin), DTRAIN_OK);
    assert_ptr_not_equal(plugin, builtin);
    assert_string_equal(plugin->version, "0.0.1");
}

void own_handler(int) {}

void test_signals_stay(void **) {
    const dtrain_tp_plugin_t *plugin;
    struct sigaction before, after;
    std::signal(SIGTERM, own_handler);
    assert_int_equal(sigaction(SIGSEGV, nullptr, &before), 0);
    assert_int_equal(find("catching", folder, plugin), DTRAIN_OK);
    assert_int_equal(sigaction(SIGSEGV, nullptr, &after), 0);
    assert_true(after.sa_handler == before.sa_handler);
    assert_true(std::signal(SIGTERM, SIG_DFL) == own_handler);
}

void test_unfit(void **) {
    refuse("other_abi", DTRAIN_ERR_VERSION, "has transport ABI 99, this library serves 1");
    refuse("no_table", DTRAIN_ERR_VERSION, "does not support this library's transport ABI 1");
    refuse("short_table", DTRAIN_ERR_CONFIG, "8 bytes");
    refuse("other_name", DTRAIN_ERR_CONFIG, "\"somebody\"");
    refuse("no_ops", DTRAIN_ERR_CONFIG, "no operations");
    refuse("no_cancel", DTRAIN_ERR_CONFIG, "cancel()");
    refuse("short_ops", DTRAIN_ERR_CONFIG, "disconnect()");
    refuse("borrowed", DTRAIN_ERR_CONFIG, "itself");
}

void test_not_a_library(void **) {
    TemporaryFolder place;
    const std::string path = place.file("libdtrain_transport_text.so");
    FILE *file = std::fopen(path.c_str(), "w");
    assert_non_null(file);
    std::fputs("not a library\n", file);
    std::fclose(file);
    const dtrain_tp_plugin_t *plugin;
    Status status = find("text", place.name, plugin);
    std::string text = error_text();
    assert_int_equal(status, DTRAIN_ERR_CONFIG);
    assert_non_null(std::strstr(text.c_str(), path.c_str()));
}

void test_unknown(void **) {
    const dtrain_tp_plugin_t *plugin;
    assert_int_equal(find("tpc", "/nonexistent", plugin), DTRAIN_ERR_NOT_FOUND);
    assert_text("\"tpc\"");
    assert_text("nearest name is \"tcp\"");
    assert_text("/nonexistent");
    assert_int_equal(find("tay", folder, plugin), DTRAIN_ERR_NOT_FOUND);
    assert_text("nearest name is \"toy\"");
}

void test_names(void **) {
    std::string longest(32, 'a'), longer(33, 'a');
    const dtrain_tp_plugin_t *plugin;
    for (const char *name : {"", "../toy", "TCP", "a b", "t.so", "toy/", longer.c_str()})
        assert_int_equal(find(name, folder, plugin), DTRAIN_ERR_INVALID);
    assert_int_equal(find(longest.c_str(), folder, plugin), DTRAIN_ERR_NOT_FOUND);
}

void test_relative_folder(void **) {
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    const dtrain_tp_plugin_t *plugin;
    Status dot = find("toy", ".", plugin), empty = find("toy", ":", plugin),
           none = find("toy", "", plugin), relative = find("toy", "/tmp:lib/dtrain", plugin);
    assert_text("\"lib/dtrain\" is not an absolute path");
    assert_int_equal(chdir(before), 0);
    assert_int_equal(dot, DTRAIN_ERR_CONFIG);
    assert_int_equal(relative, DTRAIN_ERR_CONFIG);
    assert_int_equal(empty, DTRAIN_ERR_NOT_FOUND);
    assert_int_equal(none, DTRAIN_ERR_NOT_FOUND);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin),       cmocka_unit_test(test_file),
        cmocka_unit_test(test_unfit),         cmocka_unit_test(test_file_before_builtin),
        cmocka_unit_test(test_not_a_library), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_names),         cmocka_unit_test(test_relative_folder),
        cmocka_unit_test(test_signals_stay),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
