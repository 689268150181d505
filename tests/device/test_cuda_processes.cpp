// Memory of other processes, in programs that have not used the driver before they fork.
// SPDX-License-Identifier: Apache-2.0
#include "cases_sharing.h"
#include "fake_driver.h"

int main() {
    using namespace dtrain::test;
    load_driver();
    load_cuda();
    return _cmocka_run_group_tests("processes", process_cases, std::size(process_cases), nullptr,
                                   nullptr);
}
