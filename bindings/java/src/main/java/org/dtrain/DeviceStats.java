// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * What a transport did with the program's memory.
 *
 * @param copied bytes, between it and the transport's own
 * @param inPlace bytes that the network took from it, or brought to it
 * @param registrations of it, now
 * @param registeredBytes of them
 * @param cacheEntries registrations that the transport keeps for messages to come, now
 * @param cacheBytes of them
 * @param cacheHits pieces of messages that were in what is kept
 * @param cacheMisses pieces that had to be registered
 * @param cacheEvictions registrations that are kept no more
 */
public record DeviceStats(long copied, long inPlace, long registrations, long registeredBytes,
        long cacheEntries, long cacheBytes, long cacheHits, long cacheMisses, long cacheEvictions) {
}
