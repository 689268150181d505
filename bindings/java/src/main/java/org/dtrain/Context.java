// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Transports, memory, and the job. {@link #close()} gives back everything that was made with it. The
 * package's page has a program.
 */
public final class Context implements AutoCloseable {
    private static final int API_VERSION = 1;
    private static final int PAGE = 1 << 16; // the largest of usual machines
    private final Handle handle;
    private final Abandoned abandoned = new Abandoned();
    private Completions completions;
    private Communicator world;
    private long sink;

    private Context(long address) {
        handle = new Handle(null, "context", address, this::destroy);
    }

    /**
     * Opens the transports, with options as the environment says.
     *
     * @return a new context
     */
    public static Context create() {
        return create(new Options());
    }

    /**
     * Opens the transports.
     *
     * @param options how
     * @return a new context
     */
    public static Context create(Options options) {
        long bag = Arguments.given(options, "options").make();
        try {
            return new Context(Native.dtrain_context_create(API_VERSION, bag));
        } finally {
            Native.dtrain_options_destroy(bag);
        }
    }

    /**
     * The library's version.
     *
     * @return as "0.1.0"
     */
    public static String version() {
        return Native.dtrain_version_string();
    }

    /**
     * All workers of the job that the environment names, or of one process; joined at first use.
     *
     * @return the same until it is closed
     */
    public synchronized Communicator world() {
        if (world == null || world.isClosed()) {
            world = join(Join.byEnvironment());
        }
        return world;
    }

    /**
     * Joins a job. Collective.
     *
     * @param join how
     * @return all its workers
     */
    public Communicator join(Join join) {
        Arguments.given(join, "join");
        return Communicator.make(this, join::run);
    }

    /**
     * Joins a job as a parameter server, and serves from then on in the background.
     *
     * @param join how; with sizes also {@link Join#servers} and {@link Join#index}
     * @return the server
     */
    public Server serve(Join join) {
        return new Server(handle, Arguments.given(join, "join"));
    }

    /**
     * New memory that collectives inside the host need not copy, zeroed and at the start of a page, as
     * long as the context lasts. Later the buffer is as any other.
     *
     * @param bytes how much
     * @return a direct buffer in this machine's byte order
     */
    public ByteBuffer allocate(int bytes) {
        int whole = Math.addExact(Math.max(bytes, 1), PAGE - 1) / PAGE * PAGE;
        ByteBuffer pages = ByteBuffer.allocateDirect(Math.addExact(whole, PAGE)).alignedSlice(PAGE)
                .limit(whole);
        Registration.of(handle, pages, true);
        return pages.slice(0, bytes).order(ByteOrder.nativeOrder());
    }

    /**
     * Registers a buffer's memory with the transports, which saves copies.
     *
     * @param buffer a direct one
     * @param shared moves its pages into memory that the host's other ranks can map; no thread may
     *     write to these pages during this call
     * @return to be closed
     */
    public Registration register(Buffer buffer, boolean shared) {
        return Registration.of(handle, buffer, shared);
    }

    /**
     * What a transport did with the program's memory.
     *
     * @param index of the transport in {@link #describe}
     * @return since the context was made
     */
    public DeviceStats deviceStats(int index) {
        Room room = new Room(DeviceStatsParams.bytes());
        DeviceStatsParams stats = new DeviceStatsParams(room);
        stats.prepare();
        handle.call(context -> Native.dtrain_stats_device(context, index, room.address()));
        DeviceStats found = new DeviceStats(stats.getCopied(), stats.getIn_place(),
                stats.getRegistrations(), stats.getRegistered_bytes(), stats.getCache_entries(),
                stats.getCache_bytes(), stats.getCache_hits(), stats.getCache_misses(),
                stats.getCache_evictions());
        room.keep();
        return found;
    }

    /**
     * What this build and machine can do: transports, kernels, limits.
     *
     * @return a JSON text
     */
    public String describe() {
        handle.enter();
        try {
            return Text.read((address, bytes) ->
                    Native.dtrain_context_describe(handle.address, address, bytes));
        } finally {
            handle.leave();
        }
    }

    /**
     * Does some work, with the option progress=manual.
     *
     * @return how much; 0: there is nothing to do
     */
    public int progress() {
        return (int) handle.call(Native::dtrain_context_progress);
    }

    /**
     * Sends the lines of the log to a function.
     *
     * @param sink called by any thread; null: they go to stderr again
     */
    public synchronized void setLog(LogSink sink) {
        handle.call(context -> {
            setLog(context, sink);
            return 0;
        });
    }

    /**
     * Writes what this rank does when to a file, for ui.perfetto.dev.
     *
     * @param path of the file; %r is the rank
     */
    public void startTimeline(String path) {
        Arguments.given(path, "path");
        handle.call(context -> Native.dtrain_timeline_start(context, path));
    }

    /**
     * Notes that the program has come to a point of this name.
     *
     * @param name any text
     */
    public void markTimeline(String name) {
        Arguments.given(name, "name");
        handle.call(context -> Native.dtrain_timeline_mark(context, name));
    }

    /** Ends the file. */
    public void stopTimeline() {
        handle.call(Native::dtrain_timeline_stop);
    }

    /**
     * Whether it is closed.
     *
     * @return true if so
     */
    public boolean isClosed() {
        return handle.isClosed();
    }

    /**
     * Closes what was made with it, and gives everything back.
     *
     * @throws BusyException another thread is in a call
     */
    @Override
    public void close() {
        Completions running = running();
        if (running != null) {
            running.refuseOwnThread();
        }
        handle.close();
    }

    Handle handle() {
        return handle;
    }

    Abandoned abandoned() {
        return abandoned;
    }

    synchronized Completions completions() {
        if (completions == null) {
            handle.call(context -> {
                completions = new Completions(context);
                return 0;
            });
        }
        return completions;
    }

    private synchronized Completions running() {
        return completions;
    }

    private void setLog(long context, LogSink wanted) {
        long before = sink;
        sink = wanted == null ? 0 : Callbacks.add(wanted);
        Native.dtrain_context_set_log(context, sink);
        Callbacks.remove(before);
    }

    /** All operations have ended with their communicators. */
    private void destroy(long address) {
        Completions running = running();
        if (running != null) {
            running.close();
        }
        abandoned.sweep();
        setLog(address, null);
        Native.dtrain_context_destroy(address);
    }
}
