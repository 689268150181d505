// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Options of a context by key: {@code new Options().set("op.timeout", "10s")}. Unset options come from the
 * environment (DTRAIN_OP_TIMEOUT), or the file that it names, or have their defaults.
 */
public final class Options {
    /**
     * Describes an option.
     *
     * @param key its key
     * @param defaultValue its default
     * @param text its description
     */
    public record Description(String key, String defaultValue, String text) {
    }

    private interface Change {
        void apply(long bag);
    }

    private final List<Change> changes = new ArrayList<>();

    /** All options unset. */
    public Options() {
    }

    /**
     * Sets an option. Creating the context reports wrong ones.
     *
     * @param key as describe() lists them
     * @param value its text
     * @return this
     */
    public Options set(String key, String value) {
        Arguments.given(key, "key");
        Arguments.given(value, "value");
        changes.add(bag -> Native.dtrain_options_set(bag, key, value));
        return this;
    }

    /**
     * Sets an option that is a duration.
     *
     * @param key as describe() lists them
     * @param value 0 or more
     * @return this
     */
    public Options set(String key, Duration value) {
        return set(key, Durations.ofWait(value) + "ns");
    }

    /**
     * Sets options from a file of lines "key = value".
     *
     * @param file read when the context is made
     * @return this
     */
    public Options load(Path file) {
        String path = Arguments.given(file, "file").toString();
        changes.add(bag -> Native.dtrain_options_load(bag, path));
        return this;
    }

    /**
     * The current value of an option, set or not.
     *
     * @param key its key
     * @return its value
     * @throws NotFoundException there is no such key; the text names the nearest one
     */
    public String get(String key) {
        Arguments.given(key, "key");
        long bag = make();
        try {
            Room room = new Room(1 << 16); // longer than any command line
            Native.dtrain_options_get(bag, key, room.address(), room.bytes().capacity());
            String value = Native.text_at(room.address());
            room.keep();
            return value;
        } finally {
            Native.dtrain_options_destroy(bag);
        }
    }

    /**
     * Describes all options.
     *
     * @return sorted by key
     */
    public static List<Description> describe() {
        List<Description> found = new ArrayList<>();
        Room texts = Room.of(0, 0, 0L);
        long at = texts.address();
        while (NativeJNI.dtrain_options_describe(found.size(), at, at + 8, at + 16) == 0) {
            found.add(new Description(text(texts, 0), text(texts, 1), text(texts, 2)));
        }
        return found;
    }

    private static String text(Room room, int index) {
        String text = Native.text_at(room.bytes().getLong(8 * index));
        return text == null ? "" : text;
    }

    /** Creates options of the C API, which the caller destroys. */
    long make() {
        long bag = Native.dtrain_options_create();
        try {
            for (Change change : changes) {
                change.apply(bag);
            }
        } catch (RuntimeException error) {
            Native.dtrain_options_destroy(bag);
            throw error;
        }
        return bag;
    }
}
