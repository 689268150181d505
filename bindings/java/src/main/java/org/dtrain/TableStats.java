// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.stream.IntStream;

/**
 * Counts of a worker's requests to servers. Histograms have a bucket for zeros, then buckets for 2^(i-1)
 * to 2^i - 1.
 *
 * @param requests answered
 * @param repeats sent again because no answer came
 * @param refused requests that ended in an error
 * @param dropped requests that came too early for their server
 * @param elements elements or rows of the requests
 * @param sentBytes payload, including that of repeats
 * @param receivedBytes payload
 * @param latencySum from the first send to the answer
 * @param stalenessSum updates that servers had applied since this worker's last pull
 * @param latency histogram, ns
 * @param staleness histogram
 * @param stale QUORUM: pushes and clocks of steps that were over
 * @param notFinite dropped pushes that had a NaN or an infinity ({@link NotFinite#DROP})
 */
public record TableStats(long requests, long repeats, long refused, long dropped, long elements,
        long sentBytes, long receivedBytes, Duration latencySum, long stalenessSum,
        long[] latency, long[] staleness, long stale, long notFinite) {
    private static final int BUCKETS = 40;

    static TableStats of(Room room) {
        TableStatsParams stats = new TableStatsParams(room);
        return new TableStats(stats.getRequests(), stats.getRepeats(), stats.getRefused(),
                stats.getDropped(), stats.getElements(), stats.getSent_bytes(), stats.getReceived_bytes(),
                Duration.ofNanos(stats.getLatency_sum()), stats.getStaleness_sum(),
                histogram(room, stats.getLatency()), histogram(room, stats.getStaleness()), stats.getStale(),
                stats.getNot_finite());
    }

    private static long[] histogram(Room room, long address) {
        ByteBuffer bytes = room.bytes();
        int first = (int) (address - room.address());
        return IntStream.range(0, BUCKETS).mapToLong(i -> bytes.getLong(first + 8 * i)).toArray();
    }
}
