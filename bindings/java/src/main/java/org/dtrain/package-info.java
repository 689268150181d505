// SPDX-License-Identifier: Apache-2.0
/**
 * All-reduce and a parameter server in one library. {@link org.dtrain.Context} is where to begin.
 */
package org.dtrain;
