// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;

/**
 * How operations run: {@code world.using(new Parameters().timeout(Duration.ofSeconds(5)))}.
 * Unset values have their defaults.
 */
public final class Parameters {
    static final int PERSISTENT = 1; // DTRAIN_OP_*
    static final int AWAITED = 2;
    static final int FACTORS = 4;
    private static final int ON_CUDA = 1; // DTRAIN_STREAM_CUDA
    private static final long DEFAULT_STREAM = 1;

    private long timeout;
    private int priority;
    private int flags;
    private double prescale = 1;
    private double postscale = 1;
    private double weight;
    private long minVersion;
    private DType elements;
    private long stream; // 0: none

    /** All parameters unset. */
    public Parameters() {
    }

    /**
     * The operation fails with a {@link TimedOutException} after this time, which replaces the option
     * op.timeout.
     *
     * @param timeout more than 0
     * @return this
     */
    public Parameters timeout(Duration timeout) {
        this.timeout = Durations.ofTimeout(timeout, "timeout");
        return this;
    }

    /**
     * The operation has no timeout.
     *
     * @return this
     */
    public Parameters noTimeout() {
        timeout = -1;
        return this;
    }

    /**
     * Which operations go first.
     *
     * @param priority higher goes first; 0 is normal
     * @return this
     */
    public Parameters priority(int priority) {
        this.priority = priority;
        return this;
    }

    /**
     * Multiplies this rank's input of a reduction of a floating type.
     *
     * @param factor finite
     * @return this
     */
    public Parameters prescale(double factor) {
        flags = FACTORS;
        prescale = Arguments.finite(factor, "prescale");
        return this;
    }

    /**
     * Multiplies the result of a reduction of a floating type.
     *
     * @param factor finite
     * @return this
     */
    public Parameters postscale(double factor) {
        flags = FACTORS;
        postscale = Arguments.finite(factor, "postscale");
        return this;
    }

    /**
     * The weight of a push in an average over workers.
     *
     * @param weight more than 0, for example the number of samples
     * @return this
     */
    public Parameters weight(double weight) {
        this.weight = Arguments.positive(weight, "weight");
        return this;
    }

    /**
     * A pull waits until this many updates have been applied.
     *
     * @param version compared with {@link Result#version}
     * @return this
     */
    public Parameters minVersion(long version) {
        minVersion = version;
        return this;
    }

    /**
     * The type of the elements where a buffer's class does not determine it: f16, bf16, unsigned integers,
     * and every ByteBuffer, which is refused otherwise.
     *
     * @param dtype of the elements
     * @return this
     */
    public Parameters elements(DType dtype) {
        elements = Arguments.given(dtype, "elements");
        return this;
    }

    /**
     * A stream of CUDA, in whose order collectives and messages on buffers of its GPU are: they begin when the
     * stream gets there, and what is put into it later runs when the results are there. Only blocking calls
     * wait for the stream. {@link Context#deviceBuffer}
     *
     * @param handle a CUstream or cudaStream_t; 0 and 1: the default stream
     * @return this
     */
    public Parameters stream(long handle) {
        stream = handle == 0 ? DEFAULT_STREAM : handle;
        return this;
    }

    DType elements() {
        return elements;
    }

    static Parameters copyOf(Parameters from) {
        Arguments.given(from, "parameters");
        Parameters copy = new Parameters();
        copy.timeout = from.timeout;
        copy.priority = from.priority;
        copy.flags = from.flags;
        copy.prescale = from.prescale;
        copy.postscale = from.postscale;
        copy.weight = from.weight;
        copy.minVersion = from.minVersion;
        copy.elements = from.elements;
        copy.stream = from.stream;
        return copy;
    }

    /** Writes them to a struct of the C API. */
    Room write(int also, long tag, long queue) {
        Room room = new Room(OpParams.bytes());
        OpParams params = new OpParams(room);
        params.prepare();
        params.setFlags(flags | also);
        params.setUser_tag(tag);
        params.setCq(queue);
        params.setTimeout_ns(timeout);
        params.setPriority(priority);
        if (flags != 0) {
            params.setPrescale(prescale);
            params.setPostscale(postscale);
        }
        params.setWeight(weight);
        params.setMin_version(minVersion);
        if (stream != 0) {
            params.setStream_type(ON_CUDA);
            params.setStream(stream);
        }
        return room;
    }
}
