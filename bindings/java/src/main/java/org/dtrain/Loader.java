// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * Finds the native libraries: in the folder of the property dtrain.library.path, else in the folders of
 * java.library.path, else in the jar. From the jar they are copied to a new folder below
 * dtrain.temporary.path, or java.io.tmpdir.
 */
final class Loader {
    private static final String BRIDGE = System.mapLibraryName("dtrain_java");
    private static final String LIBRARY = "libdtrain.so.0"; // what the bridge is linked with
    private static final List<String> FILES = List.of(LIBRARY, BRIDGE);
    private static final String TEMPORARY = "dtrain.temporary.path";

    /** A source of files to copy. */
    private interface Source {
        /** Returns null if there is no such file. */
        InputStream open(String name) throws IOException;
    }

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
        String inside = "native/" + System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-"
                + System.getProperty("os.arch") + "/";
        if (Loader.class.getResource(inside + BRIDGE) == null) {
            throw new UnsatisfiedLinkError("this jar has no " + inside + BRIDGE + "; give the folder of "
                    + BRIDGE + " by -Ddtrain.library.path or -Djava.library.path");
        }
        loadCopies(name -> Loader.class.getResourceAsStream(inside + name));
    }

    private static boolean loadFrom(String folder) {
        Path path = Path.of(folder).toAbsolutePath();
        if (!Files.exists(path.resolve(BRIDGE))) {
            return false;
        }
        try {
            load(path);
        } catch (UnsatisfiedLinkError error) {
            if (!error.getMessage().contains("already loaded in another classloader")) {
                throw error;
            }
            // Only one class loader can load a file.
            loadCopies(name -> Files.exists(path.resolve(name)) ? Files.newInputStream(path.resolve(name))
                    : null);
        }
        return true;
    }

    /**
     * Loads the library before the bridge, which then finds it; else the bridge searches for it.
     */
    private static void load(Path folder) {
        for (String name : FILES) {
            if (Files.exists(folder.resolve(name))) {
                System.load(folder.resolve(name).toString());
            }
        }
    }

    private static void loadCopies(Source source) {
        String base = System.getProperty(TEMPORARY, System.getProperty("java.io.tmpdir"));
        try {
            Path folder = Files.createTempDirectory(Path.of(base), "dtrain-java-"); // readable by this user only
            try {
                for (String name : FILES) {
                    copy(source, name, folder);
                }
                load(folder);
            } finally { // loaded libraries do not need their files
                for (String name : FILES) {
                    Files.deleteIfExists(folder.resolve(name));
                }
                Files.delete(folder);
            }
        } catch (IOException error) {
            throw explained("could not be copied to " + base + ": " + error, error);
        } catch (UnsatisfiedLinkError error) {
            throw explained("were copied to " + base + ", from where they cannot be loaded, as from a file "
                    + "system that is mounted noexec: " + error.getMessage(), error);
        }
    }

    private static void copy(Source source, String name, Path folder) throws IOException {
        try (InputStream in = source.open(name)) {
            if (in != null) {
                Files.copy(in, folder.resolve(name));
            }
        }
    }

    private static UnsatisfiedLinkError explained(String what, Throwable cause) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError("dtrain's native libraries " + what
                + "; name another folder for the copies by -D" + TEMPORARY + ", or the folder of "
                + BRIDGE + " itself by -Ddtrain.library.path");
        error.initCause(cause);
        return error;
    }
}
