// SPDX-License-Identifier: Apache-2.0

// Package dtrain is all-reduce and a parameter server as a library: no launcher or daemon is needed, and
// slices are not copied.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//
//		"dtrain.org/dtrain"
//	)
//
//	func main() {
//		job, err := dtrain.NewContext()
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer job.Close()
//		world, err := job.World() // the job that the environment names
//		if err != nil {
//			log.Fatal(err)
//		}
//		gradient := []float32{1, 2, 3, float32(world.Rank())}
//		if err := dtrain.AllReduce(context.Background(), world, gradient, dtrain.Avg); err != nil {
//			log.Fatal(err)
//		}
//		fmt.Println(gradient)
//	}
//
// A Context owns the transports; a Comm is a group of ranks. Operations are functions, such as AllReduce, since
// methods have no type parameters; those of a Table[T], which has its type, are methods. They block until they
// are done, or their context.Context ends them. The name with Start starts an operation, the name with Prepare
// prepares it; both return a Request at once, and need memory of Alloc or Register, since C must not keep the
// address of Go memory.
//
// Errors are *Error, with a Status for errors.Is. Every object has a Close, and Context.Close closes all of them.
// Use objects by their pointers; copies of the structs are refused.
package dtrain
