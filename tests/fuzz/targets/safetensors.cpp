// The index of a safetensors file: JSON that any program may have written.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the size of the data, then the JSON.
#include "tests/fuzz/fuzz.h"

#include "data/safetensors.h"
#include "dtrain.h"

using namespace dtrain;
using namespace dtrain::data;
using fuzz::Bytes;

namespace {

bool plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

bool same(const TensorIndex &a, const TensorIndex &b) {
    const auto equal = [](const Tensor &x, const Tensor &y) {
        return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape && x.begin == y.begin &&
               x.bytes == y.bytes;
    };
    return a.metadata == b.metadata && std::equal(a.tensors.begin(), a.tensors.end(),
                                                  b.tensors.begin(), b.tensors.end(), equal);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const auto data_bytes = in.take<uint16_t>();
    const Bytes text = in.rest();
    TensorIndex index;
    const std::string_view json(reinterpret_cast<const char *>(text.data()), text.size());
    if (parse_index(json, data_bytes, index) != DTRAIN_OK) return 0;
    FUZZ_REQUIRE(index.data_bytes() == data_bytes);
    bool writable = true;
    for (const Tensor &tensor : index.tensors) {
        FUZZ_REQUIRE(tensor.begin <= data_bytes && tensor.bytes <= data_bytes - tensor.begin);
        FUZZ_REQUIRE(index.tensor(tensor.name) == &tensor);
        writable &= plain(tensor.name);
    }
    for (const auto &[key, value] : index.metadata) writable &= plain(key) && plain(value);
    if (!writable) return 0;
    // What was read can be written, and says the same then.
    const std::string again = index_text(index);
    TensorIndex second;
    FUZZ_REQUIRE(parse_index(std::string_view(again).substr(8), data_bytes, second) == DTRAIN_OK);
    FUZZ_REQUIRE(same(index, second));
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    TensorIndex index;
    index.metadata = {{"format", "dtrain"}, {"step", "7"}};
    index.tensors = {{"values", DTRAIN_F32, {2, 3}, 0, 0}, {"keys", DTRAIN_U64, {2}, 0, 0}};
    const auto made = [](const std::string &text, uint16_t data_bytes) {
        return Made().put(data_bytes).all(text);
    };
    std::vector<Bytes> out;
    out.push_back(made(index_text(index).substr(8), 40));
    index.metadata.clear();
    index.tensors = {{"empty", DTRAIN_F64, {0, 1ull << 40}, 0, 0}, {"one", DTRAIN_BF16, {}, 0, 0}};
    out.push_back(made(index_text(index).substr(8), 2));
    for (
        const char *text :
        {"{}", "[]", R"({"a":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}})",
         R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})",
         R"({"a":{"dtype":"I8","shape":[-1],"data_offsets":[2,1]},"__metadata__":{"b":1}})",
         R"({"\u00e9":{"dtype":"BOOL","shape":[1],"data_offsets":[1,2],"x":{}}})"})
        out.push_back(made(text, 2));
    return out;
}
