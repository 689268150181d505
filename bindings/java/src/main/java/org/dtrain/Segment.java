// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Columns of a table's rows with a rule of their own. */
public final class Segment extends RuleSettings<Segment> {
    private final long first;
    private final long count;

    /**
     * So many columns.
     *
     * @param first of them
     * @param count how many
     */
    public Segment(long first, long count) {
        this.first = first;
        this.count = count;
    }

    @Override
    Segment self() {
        return this;
    }

    /** All of a table, one after the other. */
    static Room write(Segment[] segments) {
        int bytes = (int) SegmentParams.bytes();
        Room room = new Room((long) bytes * segments.length);
        for (int i = 0; i < segments.length; i++) {
            SegmentParams params = new SegmentParams(room.address() + (long) i * bytes);
            params.prepare();
            params.setFirst(segments[i].first);
            params.setCount(segments[i].count);
            segments[i].write(params);
        }
        return room;
    }
}
