// SPDX-License-Identifier: Apache-2.0
/** All-reduce and a parameter server in one library. */
module org.dtrain {
    exports org.dtrain;
}
