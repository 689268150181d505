package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"dtrain.org/dtrain"
)

func Example() {
	job, err := dtrain.NewContext()
	if err != nil {
		log.Fatal(err)
	}
	defer job.Close()
	world, err := job.World() // the job that the environment names
	if err != nil {
		log.Fatal(err)
	}
	gradient := []float32{1, 2, 3, float32(world.Rank())}
	if err := dtrain.AllReduce(context.Background(), world, gradient, dtrain.Avg); err != nil {
		log.Fatal(err)
	}
}

func ExampleAllReduce() {
	x := []int64{int64(world.Rank())}
	if err := dtrain.AllReduce(context.Background(), world, x, dtrain.Max); err != nil {
		log.Fatal(err)
	}
	fmt.Println(int(x[0]) == world.Size()-1)
	// Output: true
}

func ExampleRecv_deadline() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := dtrain.Recv(ctx, world, make([]float64, 10), dtrain.AnyRank, 1000)
	fmt.Println(errors.Is(err, dtrain.ErrTimeout), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

func ExampleStartAllReduce() {
	memory, err := dtrain.Alloc[float32](job, 1000)
	if err != nil {
		log.Fatal(err)
	}
	defer memory.Close()
	gradient := memory.Data
	request, err := dtrain.StartAllReduce(world, gradient, dtrain.Sum)
	if err != nil {
		log.Fatal(err)
	}
	// ... compute meanwhile ...
	_, err = request.Wait(context.Background())
	fmt.Println(err)
	// Output: <nil>
}

func ExampleError() {
	err := dtrain.Broadcast(context.Background(), world, []float32{1}, world.Size())
	var found *dtrain.Error
	if errors.As(err, &found) {
		fmt.Println(found.Status.Name(), found.Rank)
	}
	// Output: DTRAIN_ERR_INVALID -1
}
