/* A plugin without dtrain_transport_query().
 * SPDX-License-Identifier: Apache-2.0 */
extern int nothing;
int nothing;
