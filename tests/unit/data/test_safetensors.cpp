// The index of safetensors files: written and read back, and everything that can be wrong with it.
// SPDX-License-Identifier: Apache-2.0
#include "data/safetensors.h"

#include "data/tensor_reader.h"
#include "files.h"

#include <cstring>

using namespace dtrain::data;

namespace {

TensorIndex two_tensors() {
    TensorIndex index;
    index.metadata = {{"format", "test"}, {"step", "7"}};
    index.tensors.resize(2);
    index.tensors[0].name = "values";
    index.tensors[0].dtype = DTRAIN_F32;
    index.tensors[0].shape = {2, 3};
    index.tensors[1].name = "steps";
    index.tensors[1].dtype = DTRAIN_U64;
    index.tensors[1].shape = {2};
    return index;
}

std::string length_of(uint64_t n) {
    std::string text(8, 0);
    std::memcpy(text.data(), &n, 8);
    return text;
}

void written_and_read(void **) {
    TemporaryFolder folder;
    const std::string path = folder.file("a"), data(24 + 16, 'x');
    write_whole(path, index_text(two_tensors()) + data);
    TensorReader file;
    assert_int_equal(file.open(path), DTRAIN_OK);
    assert_string_equal(file.index().find("step")->c_str(), "7");
    assert_null(file.index().find("none"));
    const Tensor *steps = file.index().tensor("steps");
    assert_non_null(steps);
    assert_int_equal(steps->begin, 24);
    assert_int_equal(steps->bytes, 16);
    assert_int_equal(file.index().data_bytes(), 40);
    assert_int_equal(file.remaining(), 40);
    assert_int_equal(index_text(two_tensors()).size() % 8, 0); // the data is aligned
}

struct Case {
    const char *json;
    const char *says;
    dtrain::Status status = DTRAIN_ERR_CORRUPT;
};

// Of a file with 8 bytes of data.
const Case wrong[] = {
    {"", "not a JSON object"},
    {"[1]", "not a JSON object"},
    {" {}", "not a JSON object"},
    {"{\"a\":", "not a JSON object"},
    {"{}", "8 bytes of data, but the tensors have 0"},
    {R"({"a":3})", "not an object"},
    {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "is missing"},
    {R"({"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})", "is missing"},
    {R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", "unknown dtype",
     DTRAIN_ERR_UNSUPPORTED},
    {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "not a list"},
    {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "not made of numbers"},
    {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "not made of numbers"},
    {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "do not fit its shape"},
    {R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}})", "do not fit its shape"},
    {R"({"a":{"dtype":"F32","shape":[9223372036854775807,8],"data_offsets":[0,8]}})",
     "do not fit its shape"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "not two numbers"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "not in the file"},
    {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "not in the file"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[18446744073709551612,4]}})",
     "not in the file"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "8 bytes of data, but"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "gap before it"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     "overlaps"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
     R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "twice"},
    {R"({"__metadata__":1,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "__metadata__ is not"},
    {R"({"__metadata__":{"x":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
     "not a text"},
};

void what_is_wrong_is_named(void **) {
    for (const Case &c : wrong) {
        TensorIndex index;
        assert_int_equal(parse_index(c.json, 8, index), c.status);
        if (std::strstr(dtrain::error_text(), c.says) == nullptr)
            fail_msg("%s: \"%s\" does not say \"%s\"", c.json, dtrain::error_text(), c.says);
    }
}

void lengths_are_not_believed(void **) {
    TemporaryFolder folder;
    const std::string path = folder.file("a");
    auto fails = [&](const std::string &content, dtrain::Status status, const char *says) {
        write_whole(path, content);
        TensorReader file;
        assert_int_equal(file.open(path), status);
        assert_non_null(std::strstr(dtrain::error_text(), says));
        assert_non_null(std::strstr(dtrain::error_text(), path.c_str()));
    };
    fails("", DTRAIN_ERR_CORRUPT, "not even the length");
    fails("1234567", DTRAIN_ERR_CORRUPT, "not even the length");
    fails(length_of(0) + "{}", DTRAIN_ERR_CORRUPT, "an index of 0 bytes");
    fails(length_of(3) + "{}", DTRAIN_ERR_CORRUPT, "only 2 bytes follow");
    fails(length_of(UINT64_MAX) + "{}", DTRAIN_ERR_CORRUPT, "only 2 bytes follow");
    fails(length_of(max_index_bytes + 1) + std::string(max_index_bytes + 1, ' '), DTRAIN_ERR_LIMIT,
          "at most");
    const std::string whole = index_text(two_tensors()) + std::string(40, 'x');
    for (size_t size = 0; size < whole.size(); size++) { // truncated anywhere
        write_whole(path, whole.substr(0, size));
        TensorReader file;
        assert_int_equal(file.open(path), DTRAIN_ERR_CORRUPT);
    }
    TensorReader missing;
    assert_int_equal(missing.open(folder.file("none")), DTRAIN_ERR_NOT_FOUND);
}

// No byte of an index, whatever it becomes, leads to more than an error.
void damaged_bytes(void **) {
    TemporaryFolder folder;
    const std::string text = index_text(two_tensors()).substr(8);
    for (size_t at = 0; at < text.size(); at++)
        for (char c : {'\0', '"', '9', '{', '}', ',', '\x80'}) {
            std::string damaged = text;
            damaged[at] = c;
            TensorIndex index;
            if (parse_index(damaged, 40, index) == DTRAIN_OK)
                assert_int_equal(index.data_bytes(), 40);
        }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(lengths_are_not_believed),
        cmocka_unit_test(damaged_bytes),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
