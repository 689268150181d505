// The first lines of bindings/go/README.md, as its readers run them.
//
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
	world, err := job.World()
	if err != nil {
		log.Fatal(err)
	}
	x := []float32{float32(world.Rank() + 1), float32(world.Rank() + 1)}
	if err := dtrain.AllReduce(context.Background(), world, x, dtrain.Sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x)
}
