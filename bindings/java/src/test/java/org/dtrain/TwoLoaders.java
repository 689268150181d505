// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.Buffer;
import java.nio.FloatBuffer;
import java.nio.file.Path;

/** All-reduces with the classes of two class loaders, as in an application server. */
final class TwoLoaders {
    private TwoLoaders() {
    }

    private static float allreduce(ClassLoader classes) throws ReflectiveOperationException {
        Class<?> type = classes.loadClass("org.dtrain.Context");
        FloatBuffer x = Buffers.floats(2);
        try (AutoCloseable context = (AutoCloseable) type.getMethod("create").invoke(null)) {
            Object world = type.getMethod("world").invoke(context);
            world.getClass().getMethod("allreduce", Buffer.class).invoke(world, x);
        } catch (ReflectiveOperationException error) {
            throw error;
        } catch (Exception error) {
            throw new AssertionError(error);
        }
        return x.get(0);
    }

    public static void main(String[] jar) throws Throwable {
        URL[] from = {Path.of(jar[0]).toUri().toURL()};
        try (URLClassLoader one = new URLClassLoader(from, null);
                URLClassLoader other = new URLClassLoader(from, null)) {
            System.out.println(allreduce(one) + " " + allreduce(other));
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }
}
