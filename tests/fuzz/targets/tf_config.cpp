// TF_CONFIG, which an operator, a cloud or a script has written.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include "cluster/environment/tf_config.h"
#include "wire/limits.h"

using namespace dtrain;
using namespace dtrain::cluster;
using fuzz::Bytes;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string text(reinterpret_cast<const char *>(data), size);
    TfConfig config;
    if (parse_tf_config(text, config) != DTRAIN_OK) return 0;
    FUZZ_REQUIRE(config.index >= 0 && config.index < int32_t(wire::max_members));
    for (const TfConfig::Addresses *job : {&config.chief, &config.workers, &config.ps})
        for (const auto &[index, address] : *job)
            FUZZ_REQUIRE(index >= 0 && index < int32_t(wire::max_members) && !address.empty());
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (
        const char *text :
        {R"({"cluster":{"chief":["a:1"],"worker":["b:2","c:3"],"ps":["d:4"]},"task":{"type":"worker","index":1}})",
         R"({"cluster":{"worker":{"1":"b:2"}},"task":{"type":"worker","index":"1"}})",
         R"({"cluster":{"master":["a:1"],"evaluator":["e:5"]},"task":{"type":"evaluator","index":0}})",
         R"({"cluster":{"ps":["d:4"],"worker":["b:2"]},"task":{"type":"ps","index":0},"environment":"cloud"})",
         R"({"cluster":{},"task":{}})", R"({"task":{"type":"chief","index":-1}})",
         R"({"cluster":{"worker":[""]},"task":{"type":"worker","index":1e9}})",
         R"({"cluster":{"worker":{"x":"b:2","4096":1}},"task":{"type":"nobody","index":0}})"})
        out.push_back(bytes_of(text));
    return out;
}
