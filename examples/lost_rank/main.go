// The last rank of a job dies half-way, and the others go on without it: README.md tells how.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"syscall"

	"dtrain.org/dtrain"
)

const steps, stepsOfTheLastRank, length = 100, 50, 1000

// model is what is trained, and how many steps of it are done.
type model struct {
	step    int
	weights []float32
}

// train does a step. The share stands for the gradient of this rank's data: computed anew when a step
// is done again. The model changes only once the sum is complete.
func (m *model) train(ctx context.Context, world *dtrain.Comm, share float32) error {
	gradient := make([]float32, length)
	for i := range gradient {
		gradient[i] = share
	}
	if err := dtrain.AllReduce(ctx, world, gradient, dtrain.Sum); err != nil {
		return err
	}
	for i := range gradient {
		m.weights[i] += gradient[i]
	}
	m.step++
	return nil
}

// agree: one rank may have done a step that failed on another, so all take the model of the one that
// came furthest. Before the first step all begin alike by this.
func (m *model) agree(ctx context.Context, world *dtrain.Comm) error {
	furthest := []int64{int64(m.step*world.Size() + world.Rank())}
	if err := dtrain.AllReduce(ctx, world, furthest, dtrain.Max); err != nil {
		return err
	}
	taken := append([]float32(nil), m.weights...) // this may fail, too, and leave anything in its slice
	if err := dtrain.Broadcast(ctx, world, taken, int(furthest[0])%world.Size()); err != nil {
		return err
	}
	m.step, m.weights = int(furthest[0])/world.Size(), taken
	return nil
}

// isLoss tells what is a reason to go on without others.
func isLoss(err error) bool {
	return errors.Is(err, dtrain.ErrPeer) || errors.Is(err, dtrain.ErrAborted) ||
		errors.Is(err, dtrain.ErrTimeout)
}

func run() error {
	job, err := dtrain.NewContext()
	if err != nil {
		return err
	}
	defer job.Close()
	world, err := job.World()
	if err != nil {
		return err
	}
	ctx, m, agreed := context.Background(), &model{weights: make([]float32, length)}, false
	rank, last := world.Rank(), world.Size()-1
	for m.step < steps {
		if rank == last && m.step == stepsOfTheLastRank {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if agreed {
			err = m.train(ctx, world, float32(rank+1))
		} else {
			err = m.agree(ctx, world)
		}
		if agreed = err == nil; agreed {
			continue
		}
		// quoted: when a rank dies
		if !isLoss(err) { // ErrPeer, ErrAborted or ErrTimeout
			return err
		}
		smaller, failure := world.Shrink() // all who are left call it
		if failure != nil {
			return failure
		}
		if smaller.Size() == world.Size() { // nobody is lost
			return err
		}
		lost, _ := world.Failed()
		for _, rank := range lost {
			fmt.Printf("rank %d is lost: %v\n", rank, err)
		}
		world.Close()
		world = smaller // agree on the step, and go on
		// quoted so far
	}
	fmt.Printf("rank %d of %d: %d steps, weight %.1f\n", world.Rank(), world.Size(), m.step,
		m.weights[length-1])
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
