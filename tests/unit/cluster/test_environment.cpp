// Identities from parameters and from every launcher's environment.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "cluster/environment/environment.h"

#include <cstring>
#include <map>

using namespace dtrain;
using namespace dtrain::cluster;

namespace {

using Variables = std::map<std::string, std::string>;

Status find(const Variables &variables, Identity &out, IdentityRequest request = {}) {
    return find_identity(
        request,
        [&](const char *name) -> const char * {
            auto at = variables.find(name);
            return at == variables.end() ? nullptr : at->second.c_str();
        },
        out);
}

struct Case {
    const char *what;
    Variables variables;
    Role role;
    int32_t index, workers, servers;
    const char *rendezvous;
};

const char tf_dense[] = R"({"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"],
    "ps": ["p0:2222"]}, "task": {"type": "worker", "index": 1}, "environment": "cloud"})";
const char tf_local[] = R"({"cluster": {"worker": ["127.0.0.1:5000", "127.0.0.1:5001"],
    "ps": ["127.0.0.1:5002", "h:5003"]}, "task": {"type": "ps", "index": 1}})";
const char tf_sparse[] = R"({"cluster": {"chief": ["h0:2222"], "worker": {"1": "h2:2222"},
    "ps": ["p0:2222"]}, "task": {"type": "worker", "index": "1"}})";
const char tf_master[] = R"({"cluster": {"master": ["[::1]:70"], "worker": ["h:1"]},
    "task": {"type": "master", "index": 0}})";

const Case good[] = {
    {"nothing", {}, Role::worker, 0, 1, 0, ""},
    {"own",
     {{"DTRAIN_SIZE", "4"}, {"DTRAIN_RANK", "3"}, {"DTRAIN_RENDEZVOUS", "file:///x"}},
     Role::worker,
     3,
     4,
     0,
     "file:///x"},
    {"own, alone", {{"DTRAIN_SIZE", "1"}, {"DTRAIN_RANK", "0"}}, Role::worker, 0, 1, 0, ""},
    {"own server",
     {{"DTRAIN_SIZE", "4"},
      {"DTRAIN_SERVERS", "2"},
      {"DTRAIN_ROLE", "server"},
      {"DTRAIN_SERVER_INDEX", "1"},
      {"DTRAIN_RENDEZVOUS", "tcp://h:1"}},
     Role::server,
     1,
     4,
     2,
     "tcp://h:1"},
    {"torchrun",
     {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}},
     Role::worker,
     1,
     2,
     0,
     "tcp://10.0.0.1:32577"},
    {"torchrun, IPv6",
     {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "fe80::1"}, {"MASTER_PORT", "1"}},
     Role::worker,
     1,
     2,
     0,
     "tcp://[fe80::1]:3078"},
    {"torchrun, own rendezvous",
     {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"DTRAIN_RENDEZVOUS", "file:///y"}},
     Role::worker,
     1,
     2,
     0,
     "file:///y"},
    {"own before torchrun",
     {{"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"DTRAIN_RANK", "0"},
      {"DTRAIN_SIZE", "3"},
      {"DTRAIN_RENDEZVOUS", "file:///z"}},
     Role::worker,
     0,
     3,
     0,
     "file:///z"},
    {"TF dense", {{"TF_CONFIG", tf_dense}}, Role::worker, 2, 3, 1, "tcp://h0:2223"},
    {"TF local, no chief",
     {{"TF_CONFIG", tf_local}},
     Role::server,
     1,
     2,
     2,
     "tcp://127.0.0.1:5003"},
    {"TF sparse",
     {{"TF_CONFIG", tf_sparse}, {"DTRAIN_SIZE", "5"}},
     Role::worker,
     2,
     5,
     1,
     "tcp://h0:2223"},
    {"TF master", {{"TF_CONFIG", tf_master}}, Role::worker, 0, 2, 0, "tcp://[::1]:71"},
    {"TF alone", {{"TF_CONFIG", "{}"}}, Role::worker, 0, 1, 0, ""},
    {"TF with an empty cluster",
     {{"TF_CONFIG", R"({"cluster": {}, "task": {"type": "worker", "index": 0}})"}},
     Role::worker,
     0,
     1,
     0,
     ""},
};

void good_environments(void **) {
    for (const Case &c : good) {
        Identity id;
        IdentityRequest request;
        request.role = c.role;
        Status s = find(c.variables, id, request);
        if (s != DTRAIN_OK) print_error("%s: %s\n", c.what, error_text());
        assert_int_equal(s, DTRAIN_OK);
        assert_int_equal(id.role, c.role);
        assert_int_equal(id.index, c.index);
        assert_int_equal(id.workers, c.workers);
        assert_int_equal(id.servers, c.servers);
        assert_string_equal(id.rendezvous.c_str(), c.rendezvous);
        assert_int_equal(id.listen_fd, -1);
    }
}

struct Bad {
    Variables variables;
    Status status;
    const char *named; // in the error text
};

const Bad bad[] = {
    {{{"DTRAIN_SIZE", "4"}}, DTRAIN_ERR_CONFIG, "DTRAIN_RANK"},
    {{{"DTRAIN_RANK", "0"}}, DTRAIN_ERR_CONFIG, "DTRAIN_SIZE"},
    {{{"DTRAIN_RENDEZVOUS", "file:///x"}}, DTRAIN_ERR_CONFIG, "DTRAIN_SIZE"},
    {{{"DTRAIN_SIZE", "4"}, {"DTRAIN_RANK", "0"}}, DTRAIN_ERR_CONFIG, "DTRAIN_RENDEZVOUS"},
    {{{"DTRAIN_SIZE", "4"}, {"DTRAIN_RANK", "4"}}, DTRAIN_ERR_CONFIG, "DTRAIN_RANK=4"},
    {{{"DTRAIN_SIZE", "4"}, {"DTRAIN_RANK", "-1"}}, DTRAIN_ERR_CONFIG, "DTRAIN_RANK=-1"},
    {{{"DTRAIN_SIZE", "4x"}, {"DTRAIN_RANK", "0"}}, DTRAIN_ERR_CONFIG, "DTRAIN_SIZE=4x"},
    {{{"DTRAIN_SIZE", "99999999999"}, {"DTRAIN_RANK", "0"}}, DTRAIN_ERR_CONFIG, "DTRAIN_SIZE"},
    {{{"DTRAIN_SIZE", "2"}, {"DTRAIN_RANK", "0"}, {"DTRAIN_ROLE", "boss"}},
     DTRAIN_ERR_CONFIG,
     "DTRAIN_ROLE=boss"},
    {{{"DTRAIN_SIZE", "2"}, {"DTRAIN_ROLE", "server"}}, DTRAIN_ERR_CONFIG, "DTRAIN_SERVERS"},
    {{{"DTRAIN_SIZE", "2"}, {"DTRAIN_ROLE", "server"}, {"DTRAIN_SERVERS", "2"}},
     DTRAIN_ERR_CONFIG,
     "DTRAIN_SERVER_INDEX"},
    {{{"DTRAIN_SIZE", "2"},
      {"DTRAIN_RANK", "0"},
      {"DTRAIN_RENDEZVOUS", "file:///x"},
      {"DTRAIN_LISTEN_FD", "three"}},
     DTRAIN_ERR_CONFIG,
     "DTRAIN_LISTEN_FD"},
    {{{"RANK", "1"}}, DTRAIN_ERR_CONFIG, "WORLD_SIZE"},
    {{{"WORLD_SIZE", "2"}}, DTRAIN_ERR_CONFIG, "RANK"},
    {{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, DTRAIN_ERR_CONFIG, "MASTER_ADDR"},
    {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}}, DTRAIN_ERR_CONFIG, "MASTER_PORT"},
    {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "65536"}},
     DTRAIN_ERR_CONFIG,
     "MASTER_PORT=65536"},
    {{{"TF_CONFIG", "{"}}, DTRAIN_ERR_CONFIG, "TF_CONFIG"},
    {{{"TF_CONFIG", "[1, 2]"}}, DTRAIN_ERR_CONFIG, "TF_CONFIG"},
    {{{"TF_CONFIG", R"({"cluster": 7})"}}, DTRAIN_ERR_CONFIG, "cluster"},
    {{{"TF_CONFIG", R"({"cluster": {"worker": "h:1"}})"}}, DTRAIN_ERR_CONFIG, "cluster.worker"},
    {{{"TF_CONFIG", R"({"cluster": {"worker": [1]}})"}}, DTRAIN_ERR_CONFIG, "cluster.worker[0]"},
    {{{"TF_CONFIG", R"({"cluster": {"worker": ["h:1"]}})"}}, DTRAIN_ERR_CONFIG, "task"},
    {{{"TF_CONFIG", R"({"cluster": {"worker": ["h:1"]}, "task": {"index": 0}})"}},
     DTRAIN_ERR_CONFIG,
     "task.type"},
    {{{"TF_CONFIG", R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "king"}})"}},
     DTRAIN_ERR_CONFIG,
     "king"},
    {{{"TF_CONFIG",
       R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "worker", "index": -1}})"}},
     DTRAIN_ERR_CONFIG,
     "task.index"},
    {{{"TF_CONFIG", R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "worker", "index": 1}})"}},
     DTRAIN_ERR_CONFIG,
     "worker 1"},
    {{{"TF_CONFIG",
       R"({"cluster": {"worker": ["h:1", "g"]}, "task": {"type": "evaluator", "index": 0}})"}},
     DTRAIN_ERR_UNSUPPORTED,
     "TF_CONFIG's task: this is an evaluator"},
    {{{"TF_CONFIG", // even if the job has only one process
       R"({"cluster": {"worker": ["h:1"]}, "task": {"type": "evaluator", "index": 0}})"}},
     DTRAIN_ERR_UNSUPPORTED,
     "evaluator"},
    {{{"DTRAIN_ROLE", "evaluator"}}, DTRAIN_ERR_UNSUPPORTED, "DTRAIN_ROLE: this is an evaluator"},
    {{{"DTRAIN_ROLE", "king"}}, DTRAIN_ERR_CONFIG, "worker, server or evaluator"},
    {{{"TF_CONFIG",
       R"({"cluster": {"worker": ["h", "g:1"]}, "task": {"type": "worker", "index": 0}})"}},
     DTRAIN_ERR_CONFIG,
     "host:port"},
    {{{"TF_CONFIG", tf_sparse}}, DTRAIN_ERR_CONFIG, "DTRAIN_SIZE"},
    {{{"TF_CONFIG",
       R"({"cluster": {"worker": {"1": "h:1"}}, "task": {"type": "worker", "index": 1}})"},
      {"DTRAIN_SIZE", "2"}},
     DTRAIN_ERR_CONFIG,
     "DTRAIN_RENDEZVOUS"},
};

void bad_environments(void **) {
    for (const Bad &b : bad) {
        Identity id;
        id.index = 77;
        IdentityRequest request;
        if (b.variables.contains("DTRAIN_ROLE") && b.variables.at("DTRAIN_ROLE") == "server")
            request.role = Role::server;
        Status s = find(b.variables, id, request);
        if (s != b.status || std::strstr(error_text(), b.named) == nullptr)
            print_error("wanted %s: got %s: %s\n", b.named, status_name(s), error_text());
        assert_int_equal(s, b.status);
        assert_non_null(std::strstr(error_text(), b.named));
        assert_int_equal(id.index, 77);
    }
}

void parameters_go_first(void **) {
    Variables torch{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "5"}};
    Identity id;
    assert_int_equal(find(torch, id, {"file:///f", Role::worker, 4, 3, 1}), DTRAIN_OK);
    assert_int_equal(id.member(), 3);
    assert_int_equal(id.members(), 5);
    assert_string_equal(id.rendezvous.c_str(), "file:///f");
    assert_int_equal(id.port_seed, 0);
    assert_int_equal(find(torch, id, {"env", Role::worker, 4, 2, 0}), DTRAIN_OK);
    assert_string_equal(id.rendezvous.c_str(), "tcp://h:3082");
    assert_int_equal(id.port_seed, 5);
    assert_int_equal(find({}, id, {"", Role::server, 4, 0, 1}), DTRAIN_ERR_CONFIG);
    assert_int_equal(find({}, id, {"oob", Role::worker, 4, 4, 0}), DTRAIN_ERR_INVALID);
    assert_int_equal(find({}, id, {"oob", Role::worker, -1, 0, 0}), DTRAIN_ERR_INVALID);
    assert_int_equal(find({}, id, {"oob", Role::worker, 4096, 0, 1}), DTRAIN_ERR_INVALID);
    assert_int_equal(find(torch, id, {"", Role::server, 0, 0, 0}), DTRAIN_ERR_STATE);
}

void inherited_listener(void **) {
    Variables v{{"DTRAIN_SIZE", "2"},
                {"DTRAIN_RANK", "0"},
                {"DTRAIN_RENDEZVOUS", "tcp://h:1"},
                {"DTRAIN_LISTEN_FD", "5"}};
    Identity id;
    assert_int_equal(find(v, id), DTRAIN_OK);
    assert_int_equal(id.listen_fd, 5);
    assert_int_equal(find(v, id, {"file:///f", Role::worker, 2, 0, 0}), DTRAIN_OK); // another job
    assert_int_equal(id.listen_fd, -1);
    v.insert_or_assign("DTRAIN_RANK", std::string("1"));
    assert_int_equal(find(v, id), DTRAIN_OK);
    assert_int_equal(id.listen_fd, -1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(good_environments),
        cmocka_unit_test(bad_environments),
        cmocka_unit_test(parameters_go_first),
        cmocka_unit_test(inherited_listener),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
