// The libfabric transport over provider "net".
// SPDX-License-Identifier: Apache-2.0
#include "ofi.h"

int main() { return dtrain::test::run_over_ofi("net"); }
