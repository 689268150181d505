// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.file.Path;
import java.util.List;

/** Reads TFRecord files one after the other, or its share of them. */
public final class RecordReader implements AutoCloseable {
    private final Handle handle;
    private final Room out = Room.of(0, 0L);

    /**
     * Reads all records.
     *
     * @param files in this order
     */
    public RecordReader(List<Path> files) {
        this(files, 0, 1, 0);
    }

    /**
     * Reads a share of the records: whole files if there are at least `shards`, else single records.
     *
     * @param files in this order
     * @param shard this reader's share, from 0
     * @param shards number of shares
     * @param maxRecord the longest record accepted, in bytes; 0: 64 MiB
     */
    public RecordReader(List<Path> files, int shard, int shards, long maxRecord) {
        for (Path file : Arguments.given(files, "files")) {
            Arguments.given(file, "a file");
        }
        Room room = new Room(ReaderParams.bytes());
        ReaderParams params = new ReaderParams(room);
        params.prepare();
        params.setShard(shard);
        params.setShards(shards);
        params.setMax_record(maxRecord);
        List<Room> names = files.stream().map(file -> Text.room(file.toString())).toList();
        Room list = Room.of(names.stream().mapToLong(Room::address).toArray());
        long address = Native.dtrain_reader_open(list.address(), files.size(), room.address());
        room.keep();
        list.keep();
        names.forEach(Room::keep);
        handle = new Handle(null, "reader", address, Native::dtrain_reader_close);
    }

    /**
     * Reads the next record.
     *
     * @return null after the last
     * @throws CorruptException a file is damaged
     */
    public synchronized byte[] next() {
        handle.enter();
        try {
            long status = NativeJNI.dtrain_reader_next(handle.address, out.address(), out.address() + 8);
            if (status == Status.NOT_FOUND.number()) {
                return null;
            }
            Failures.check(status);
            byte[] record = new byte[Math.toIntExact(out.bytes().getLong(8))];
            if (record.length > 0) {
                NativeJNI.memory(out.bytes().getLong(0), record.length).get(record);
            }
            return record;
        } finally {
            handle.leave();
        }
    }

    /** Returns to the first record. */
    public synchronized void rewind() {
        handle.call(Native::dtrain_reader_rewind);
    }

    /** Closes the files. */
    @Override
    public synchronized void close() {
        handle.close();
    }
}
