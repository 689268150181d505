// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Finds the native libraries: in the folder of the property dtrain.library.path, then in those of
 * java.library.path, then in the jar.
 */
final class Loader {
    private static final String BRIDGE = System.mapLibraryName("dtrain_java");
    private static final String LIBRARY = "libdtrain.so.0"; // what the bridge is linked with

    private Loader() {
    }

    static void load() {
        String own = System.getProperty("dtrain.library.path");
        if (own != null) {
            if (!loadFrom(own)) {
                throw new UnsatisfiedLinkError("no " + BRIDGE + " in " + own
                        + ", the folder of -Ddtrain.library.path");
            }
            return;
        }
        for (String folder : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
            if (!folder.isEmpty() && loadFrom(folder)) {
                return;
            }
        }
        loadFromJar();
    }

    private static boolean loadFrom(String folder) {
        Path path = Path.of(folder).toAbsolutePath();
        if (!Files.exists(path.resolve(BRIDGE))) {
            return false;
        }
        load(path);
        return true;
    }

    /** The bridge finds the library that is loaded before it, else by its own search. */
    private static void load(Path folder) {
        if (Files.exists(folder.resolve(LIBRARY))) {
            System.load(folder.resolve(LIBRARY).toString());
        }
        System.load(folder.resolve(BRIDGE).toString());
    }

    private static void loadFromJar() {
        String inside = "native/" + System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-"
                + System.getProperty("os.arch") + "/";
        try {
            Path folder = Files.createTempDirectory("dtrain-java-"); // for this user's eyes only
            try {
                for (String name : new String[] {LIBRARY, BRIDGE}) {
                    extract(inside + name, folder.resolve(name));
                }
                load(folder);
            } finally { // what is loaded needs its files no more
                for (String name : new String[] {LIBRARY, BRIDGE}) {
                    Files.deleteIfExists(folder.resolve(name));
                }
                Files.delete(folder);
            }
        } catch (IOException error) {
            throw new UncheckedIOException("the native libraries could not be written to "
                    + System.getProperty("java.io.tmpdir") + " (property java.io.tmpdir)", error);
        }
    }

    private static void extract(String resource, Path file) throws IOException {
        try (InputStream in = Loader.class.getResourceAsStream(resource)) {
            if (in == null) {
                throw new UnsatisfiedLinkError("this jar has no " + resource + "; give the folder of "
                        + BRIDGE + " by -Ddtrain.library.path or -Djava.library.path");
            }
            Files.copy(in, file);
        }
    }
}
