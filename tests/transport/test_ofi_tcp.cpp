// The libfabric transport over provider "tcp;ofi_rxm".
// SPDX-License-Identifier: Apache-2.0
#include "ofi.h"

int main() { return dtrain::test::run_over_ofi("tcp;ofi_rxm"); }
