// Tokens: what is proven by them, what a server grants, and files that are none.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "ps/table/access.h"
#include "ps/table/protocol.h"
#include "ps/table/table_wire.h"
#include "temporary_folder.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <sys/stat.h>

using namespace dtrain;
using namespace dtrain::ps;
using protection::Occasion;

namespace {

const TemporaryFolder folder;

std::string file_of(const std::string &text, mode_t mode = 0600) {
    static int number = 0;
    const std::string path = folder.file("tokens" + std::to_string(number++));
    FILE *file = std::fopen(path.c_str(), "w");
    assert_non_null(file);
    std::fputs(text.c_str(), file);
    std::fclose(file);
    assert_int_equal(chmod(path.c_str(), mode), 0);
    return path;
}

template <class Read> Read read(const std::string &text) {
    Read out;
    assert_int_equal(Read::read(file_of(text), out), DTRAIN_OK);
    return out;
}
Tokens tokens(const std::string &text) { return read<Tokens>(text); }
Access access(const std::string &text) { return read<Access>(text); }

constexpr char chief[] = "the-token-of-the-chief", reader[] = "the-token-of-a-reader";
const std::string list = std::string("# who may do what\n\n") + "weights\t create,push  " + chief +
                         "\r\nweights checkpoint " + chief + "\nw* pull " + reader + "\nlast all " +
                         chief;
constexpr Occasion occasion = {0x1234567890abcdef, 3, "weights"};

void a_token_grants_what_its_lines_say(void **) {
    const Access server = access(list);
    const auto granted = [&](const std::string &own, const Occasion &to) {
        return server.rights(to, tokens(own).proofs(to));
    };
    assert_int_equal(granted(chief, occasion), Right::create | Right::push | Right::checkpoint);
    assert_int_equal(granted(reader, occasion), Right::pull);
    assert_int_equal(granted(std::string(reader) + "\n" + chief + "\n", occasion), Right::all);
    assert_int_equal(granted("another-token-of-nobody", occasion), 0);
    const Occasion others[] = {{1, 3, "words"}, {1, 3, "last"}, {1, 3, "free"}, {1, 3, "lastly"}};
    assert_int_equal(granted(chief, others[0]), 0);
    assert_int_equal(granted(reader, others[0]), Right::pull);
    assert_int_equal(granted(chief, others[1]), Right::all);
    for (const Occasion &to : {others[2], others[3]}) // which no line names
        assert_int_equal(server.rights(to, ""), Right::all);
    Access none;
    assert_int_equal(Access::read("", none), DTRAIN_OK);
    assert_int_equal(none.rights(occasion, ""), Right::all);
}

// Somebody who reads the network can do nothing with what was sent.
void a_proof_serves_nobody_else(void **) {
    const Access server = access(list);
    const std::string proof = tokens(chief).proofs(occasion);
    assert_int_equal(proof.size(), sizeof(protection::TokenProof));
    assert_int_equal(proof.find("token"), std::string::npos);
    Occasion other = occasion;
    other.job++;
    assert_int_equal(server.rights(other, proof), 0);
    other = occasion;
    other.worker--;
    assert_int_equal(server.rights(other, proof), 0);
    other = occasion;
    other.table = "last";
    assert_int_equal(server.rights(other, proof), 0);
    for (size_t bit = 0; bit < 8 * proof.size(); bit++) {
        std::string changed = proof;
        changed[bit / 8] = char(changed[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(server.rights(occasion, changed), 0);
    }
    for (size_t length = 0; length < proof.size(); length++)
        assert_int_equal(server.rights(occasion, proof.substr(0, length)), 0);
}

void proofs_travel_with_the_table(void **) {
    dtrain_table_params_t given;
    DTRAIN_INIT(&given);
    given.dtype = DTRAIN_F32;
    given.length = 10;
    TableParams params, back;
    assert_int_equal(resolve(given, "weights", params), DTRAIN_OK);
    std::string eight;
    for (size_t i = 0; i < most_tokens; i++) eight += std::string(chief) + char('0' + i) + "\n";
    const std::string proofs = tokens(eight).proofs(occasion);
    const std::string payload = encode_table(params, "weights", proofs);
    std::string name;
    std::string_view got;
    uint32_t bad = 0;
    assert_true(decode_table(payload.data(), payload.size(), back, name, bad, &got));
    assert_int_equal(bad, field_count);
    assert_string_equal(name.c_str(), "weights");
    assert_true(got == proofs);
    const std::string more = encode_table(params, "weights", proofs + proofs);
    assert_false(decode_table(more.data(), more.size(), back, name, bad, &got));
    for (size_t length = 0; length < payload.size() - 7; length++)
        assert_false(decode_table(payload.data(), length, back, name, bad, &got));
}

void files_that_are_none_are_refused(void **) {
    struct Case {
        const char *text, *why;
        bool of_server;
    };
    const std::string nine = [] {
        std::string out;
        for (int i = 0; i < 9; i++) out += std::string(chief) + "\n";
        return out;
    }();
    const Case cases[] = {
        {"short", "ps.token.file: line 1: a token is one word of at least 16", false},
        {"\nthe-token-of-a chief", "line 2: a token is one word", false},
        {nine.c_str(), "at most 8 tokens", false},
        {"", "ps.token.file: ", false},
        {"weights push", "ps.access: line 1: at its end, a token", true},
        {"#\nweights push the-token-of-the-chief twice", "line 2: at its end, a token", true},
        {"weights pushes the-token-of-the-chief", "create, push, pull and checkpoint", true},
        {"weights push,,pull the-token-of-the-chief", "create, push, pull and checkpoint", true},
        {"weights", "line 1: after the table's name", true},
    };
    for (const Case &one : cases) {
        Tokens its;
        Access list_of_it;
        const std::string path = file_of(one.text);
        const Status s = one.of_server ? Access::read(path, list_of_it) : Tokens::read(path, its);
        assert_int_equal(s, DTRAIN_ERR_CONFIG);
        if (std::strstr(error_text(), one.why) == nullptr) print_error("%s\n", error_text());
        assert_non_null(std::strstr(error_text(), one.why));
        assert_null(std::strstr(error_text(), "the-token")); // nor are tokens shown
    }
    Access readable;
    assert_int_equal(Access::read(file_of(list, 0644), readable), DTRAIN_ERR_CONFIG);
    assert_non_null(std::strstr(error_text(), "option ps.access: users other than its owner"));
}

// Each kind of request that reads or changes a table needs a right.
void every_request_needs_its_right(void **) {
    for (uint8_t number = 1; number <= last_request_kind; number++) {
        const auto kind = RequestKind(number);
        const uint8_t rights = rights_for(kind);
        const bool values = has_trait(kind, Trait::ranged);
        const bool changes =
            has_trait(kind, Trait::pushes) ||
            (values && has_trait(kind, Trait::sends) && !has_trait(kind, Trait::receives));
        if (changes) assert_true((rights & Right::push) != 0);
        if (has_trait(kind, Trait::receives)) assert_true((rights & Right::pull) != 0);
        if (has_trait(kind, Trait::files)) assert_int_equal(rights, Right::checkpoint);
        assert_int_equal(rights & Right::create, 0);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_token_grants_what_its_lines_say),
        cmocka_unit_test(a_proof_serves_nobody_else),
        cmocka_unit_test(proofs_travel_with_the_table),
        cmocka_unit_test(files_that_are_none_are_refused),
        cmocka_unit_test(every_request_needs_its_right),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
