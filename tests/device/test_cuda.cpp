// The CUDA plugin on the driver for tests; with DTRAIN_TEST_REAL_CUDA on the machine's own GPU.
// SPDX-License-Identifier: Apache-2.0
#include "cases_cuda.h"
#include "fake_driver.h"

int main() {
    using namespace dtrain::test;
    setenv("FAKECUDA_DEVICES", "2", 1);
    load_driver();
    load_cuda();
    if (is_real())
        for (const CMUnitTest &test : cuda_cases)
            subject.left_out[test.name] = "it needs the driver for tests";
    return run_conformance(cuda_cases);
}
