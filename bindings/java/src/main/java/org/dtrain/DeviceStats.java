// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * How a transport has handled the program's memory.
 *
 * @param copied bytes that it copied between this memory and its own
 * @param inPlace bytes that the network took from this memory, or wrote to it
 * @param registrations of this memory, now
 * @param registeredBytes bytes of these registrations
 * @param cacheEntries registrations that the transport keeps for later messages, now
 * @param cacheBytes bytes of these registrations
 * @param cacheHits pieces of messages whose registration was kept
 * @param cacheMisses pieces that had to be registered
 * @param cacheEvictions registrations that were removed from the cache
 */
public record DeviceStats(long copied, long inPlace, long registrations, long registeredBytes,
        long cacheEntries, long cacheBytes, long cacheHits, long cacheMisses, long cacheEvictions) {
}
