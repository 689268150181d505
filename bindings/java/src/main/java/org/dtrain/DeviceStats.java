// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * What a transport did with the program's memory.
 *
 * @param copied bytes, between it and the transport's own
 * @param inPlace bytes that the network took from it, or brought to it
 */
public record DeviceStats(long copied, long inPlace) {
}
