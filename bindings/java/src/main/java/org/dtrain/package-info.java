// SPDX-License-Identifier: Apache-2.0
/**
 * All-reduce and a parameter server in one library. Start with {@link org.dtrain.Context}:
 *
 * <pre>{@code
 * import java.nio.ByteBuffer;
 * import java.nio.ByteOrder;
 * import java.nio.FloatBuffer;
 * import org.dtrain.*;
 *
 * class Program {
 *     public static void main(String[] arguments) {
 *         try (Context context = Context.create(); Communicator world = context.world()) {
 *             FloatBuffer gradient = ByteBuffer.allocateDirect(4000).order(ByteOrder.nativeOrder())
 *                     .asFloatBuffer();
 *             gradient.put(0, world.rank());
 *             world.allreduce(gradient, Op.AVG);
 *             System.out.println("the mean of all ranks is " + gradient.get(0));
 *         }
 *     }
 * }
 * }</pre>
 */
package org.dtrain;
