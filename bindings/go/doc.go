// SPDX-License-Identifier: Apache-2.0

// Package dtrain is all-reduce and a parameter server as a library: no launcher or daemon is needed,
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
//		world, err := job.World() // who am I: from the environment
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
// A Context has the transports; a Comm is a group of ranks. Operations are functions, e.g. AllReduce, since
// methods have no type parameters; those of a Table[T], which has its type, are methods. They block until they
// are done, or their context.Context ends them. With Start in front of its name an operation is begun, with
// Prepare it is prepared; both return a Request at once, and work on memory of Alloc or Register, since C must
// not keep the address of memory of Go's.
//
// Errors are *Error, with a Status for errors.Is. Everything has a Close, and Context.Close closes all. What
// stands for something of the library is used by its pointer; copies of the structs are refused.
package dtrain
