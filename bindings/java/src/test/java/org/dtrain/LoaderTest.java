// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The places from which the native libraries are loaded, each in a new virtual machine. */
@Tag("unit")
class LoaderTest {
    private static Path jar() throws Exception {
        return Path.of(Context.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    private static void unpack(Path folder) throws Exception {
        try (JarFile file = new JarFile(jar().toFile())) {
            for (var entry : file.stream().filter(one -> one.getName().contains("/native/linux-")
                    && !one.isDirectory()).toList()) {
                try (InputStream in = file.getInputStream(entry)) {
                    Files.copy(in, folder.resolve(Path.of(entry.getName()).getFileName()));
                }
            }
        }
    }

    private static List<String> java(String... arguments) {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-cp",
                System.getProperty("java.class.path")));
        command.addAll(List.of(arguments));
        return command;
    }

    /** Returns the command's output. well: whether the command must succeed. */
    private static String run(boolean well, List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(well, process.waitFor() == 0, text);
        return text;
    }

    private static String main() {
        return TwoLoaders.class.getName();
    }

    @Test
    void twoClassLoaders(@TempDir Path folder) throws Exception {
        unpack(folder);
        for (String where : List.of("-Ddtrain.library.path=" + folder, "-Djava.library.path=" + folder,
                "-Dnothing=said")) {
            assertEquals("2.0 2.0", run(true, java(where, main(), jar().toString())).strip());
        }
    }

    @Test
    void aFolderOfTheCopies(@TempDir Path folder) throws Exception {
        assertEquals("2.0 2.0", run(true, java("-Djava.io.tmpdir=/no/such/folder",
                "-Ddtrain.temporary.path=" + folder, main(), jar().toString())).strip());
        try (var left = Files.list(folder)) {
            assertEquals(List.of(), left.toList());
        }
        String text = run(false, java("-Ddtrain.temporary.path=" + folder.resolve("none"), main(),
                jar().toString()));
        assertTrue(text.contains("could not be copied to " + folder.resolve("none")), text);
        assertTrue(text.contains("-Ddtrain.temporary.path"), text);
    }

    @Test
    void aFolderWithoutPrograms(@TempDir Path folder) throws Exception {
        List<String> mounted = new ArrayList<>(List.of("unshare", "-rm", "sh", "-c",
                "mount -t tmpfs -o noexec none " + folder + " && exec \"$@\"", "sh"));
        List<String> tried = new ArrayList<>(mounted);
        tried.add("true");
        Process process = new ProcessBuilder(tried).redirectErrorStream(true).start();
        process.getInputStream().readAllBytes();
        boolean mounts = process.waitFor() == 0;
        if (!mounts) { // ./dev test names what was left out
            System.out.println("skipped: aFolderWithoutPrograms");
        }
        assumeTrue(mounts, "needs a mount of its own");
        mounted.addAll(java("-Djava.io.tmpdir=" + folder, main(), jar().toString()));
        String text = run(false, mounted);
        for (String part : List.of("copied to " + folder, "noexec", "-Ddtrain.temporary.path",
                "-Ddtrain.library.path", "Caused by: java.lang.UnsatisfiedLinkError")) {
            assertTrue(text.contains(part), text);
        }
    }
}
