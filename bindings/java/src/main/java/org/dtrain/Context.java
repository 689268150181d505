// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Transports, memory, and the job. {@link #close()} closes all objects that were made with it. The
 * package's page has an example program.
 */
public final class Context implements AutoCloseable {
    private static final int API_VERSION = 1;
    private static final int PAGE = 1 << 16; // the largest page size of usual machines
    private final Handle handle;
    private final Abandoned abandoned = new Abandoned();
    private Completions completions;
    private Communicator world;
    private long sink;
    private volatile boolean knowsGpus;

    private Context(long address) {
        handle = new Handle(null, "context", address, this::destroy);
    }

    /**
     * Opens the transports, with options from the environment.
     *
     * @return a new context
     */
    public static Context create() {
        return create(new Options());
    }

    /**
     * Opens the transports.
     *
     * @param options the options
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
     * All workers of the job that the environment names (without one, this process alone). The first call
     * joins it.
     *
     * @return the same object until it is closed
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
     * @param join how to join
     * @return the communicator of all its workers
     */
    public Communicator join(Join join) {
        Arguments.given(join, "join");
        return Communicator.make(this, join::run);
    }

    /**
     * Joins a job as a parameter server, which then serves in the background.
     *
     * @param join how to join; with sizes also {@link Join#servers} and {@link Join#index}
     * @return the server
     */
    public Server serve(Join join) {
        return new Server(handle, Arguments.given(join, "join"));
    }

    /**
     * Allocates zeroed, page-aligned memory that collectives inside the host need not copy, as long as the
     * context lasts. Afterwards the buffer is like any other.
     *
     * @param bytes the size
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
     * Memory of an NVIDIA GPU as a buffer for all operations, where direct buffers are possible: its class is that
     * for the type ({@link DType}), and {@link Parameters#elements} has to name types that its class does not
     * determine. Its elements cannot be read or written in Java: that would end the virtual machine. The
     * program keeps the memory until the operations on it have ended.
     *
     * @param address a CUdeviceptr, of cudaMalloc
     * @param count its elements; the buffer has less than 2 GiB
     * @param dtype their type
     * @return a direct buffer
     * @throws UnsupportedException this context cannot use GPUs, for the reason that is given
     */
    public Buffer deviceBuffer(long address, long count, DType dtype) {
        Buffer made = DeviceMemory.at(address, count, Arguments.given(dtype, "dtype"));
        if (!knowsGpus) { // it looks for them when it is described
            DeviceMemory.check(describe());
            knowsGpus = true;
        }
        return made;
    }

    /**
     * Allocates memory of an NVIDIA GPU.
     *
     * @param count its elements; the buffer has less than 2 GiB
     * @param dtype their type
     * @param device the number of the GPU
     * @param shared for reductions between the ranks on this GPU without copies
     * @return the memory, to be closed
     * @throws DtrainException there is no such GPU, or not so much memory left, or this context cannot use GPUs
     */
    public DeviceAllocation allocateOnDevice(long count, DType dtype, int device, boolean shared) {
        return DeviceAllocation.of(this, handle, count, Arguments.given(dtype, "dtype"), device, shared);
    }

    /**
     * Registers a buffer's memory with the transports, which saves copies.
     *
     * @param buffer a direct one
     * @param shared moves its pages into memory that the host's other ranks can map; no thread may
     *     write to these pages during this call
     * @return the registration, which the caller closes
     */
    public Registration register(Buffer buffer, boolean shared) {
        return Registration.of(handle, buffer, shared);
    }

    /**
     * How a transport has handled the program's memory.
     *
     * @param index of the transport in {@link #describe}
     * @return counts since the context was created
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
     * Does some work; needed with the option progress=manual.
     *
     * @return how much; 0: there was nothing to do
     */
    public int progress() {
        return (int) handle.call(Native::dtrain_context_progress);
    }

    /**
     * Sends the lines of the log to a function.
     *
     * @param sink called by any thread; null: back to stderr
     */
    public synchronized void setLog(LogSink sink) {
        handle.call(context -> {
            setLog(context, sink);
            return 0;
        });
    }

    /**
     * Writes a timeline of this rank to a file, for ui.perfetto.dev.
     *
     * @param path of the file; %r is the rank
     */
    public void startTimeline(String path) {
        Arguments.given(path, "path");
        handle.call(context -> Native.dtrain_timeline_start(context, path));
    }

    /**
     * Marks this moment in the timeline under the given name.
     *
     * @param name any text
     */
    public void markTimeline(String name) {
        Arguments.given(name, "name");
        handle.call(context -> Native.dtrain_timeline_mark(context, name));
    }

    /** Ends the timeline and closes its file. */
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
     * Closes all objects that were made with it, then the context.
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

    /** Called when all operations have ended with their communicators. */
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
