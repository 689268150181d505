// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Ends Java while operations are in flight, a thread waits, and the log goes to a sink. */
final class ExitInFlight {
    private ExitInFlight() {
    }

    public static void main(String[] arguments) throws InterruptedException {
        Context context = Context.create(new Options().set("log.level", "debug"));
        context.setLog((level, line) -> {
        });
        Communicator world = context.world();
        world.start().recv(Buffers.bytes(1 << 20).asIntBuffer(), 0, 0);
        Persistent prepared = world.prepare().recv(Buffers.bytes(1 << 20).asIntBuffer(), 0, 1);
        prepared.start();
        Thread waiting = new Thread(() -> world.recv(Buffers.ints(0), 0, 2));
        waiting.setDaemon(true);
        waiting.start();
        while (waiting.getState() == Thread.State.NEW) {
            Thread.sleep(1);
        }
        System.exit(0);
    }
}
