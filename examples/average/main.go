// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"

	"dtrain.org/dtrain"
)

func main() {
	job, err := dtrain.NewContext()
	if err != nil {
		log.Fatal(err)
	}
	defer job.Close()
	world, err := job.World() // who am I: the environment
	if err != nil {
		log.Fatal(err)
	}
	gradient := []float32{1, float32(world.Rank())}
	if err := dtrain.AllReduce(context.Background(), world, gradient, dtrain.Avg); err != nil { // in place
		log.Fatal(err)
	}
	fmt.Printf("rank %d of %d: %g\n", world.Rank(), world.Size(), gradient[1])
}
