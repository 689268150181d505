package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dtrain.org/dtrain"
)

// copied copies the struct that a pointer points to, in a way that `go vet` cannot see.
func copied[T any](pointer *T) *T {
	other := reflect.New(reflect.TypeOf(*pointer))
	other.Elem().Set(reflect.ValueOf(pointer).Elem())
	return other.Interface().(*T)
}

func said(t *testing.T, err error, text string) {
	t.Helper()
	refused(t, err, dtrain.ErrState)
	if !strings.Contains(err.Error(), text) {
		t.Fatalf("%v does not say %q", err, text)
	}
}

func second[T any](_ T, err error) error { return err }

// uses are calls with a handle of each kind.
func uses(c *dtrain.Context, comm *dtrain.Comm, table *dtrain.Table[float32], queue *dtrain.Gradients,
	graph *dtrain.Graph, compressor *dtrain.Compressor, request *dtrain.Request, writer *dtrain.Writer,
	memory *dtrain.Memory[float32]) map[string]error {
	x := []float32{1}
	return map[string]error{
		"World": second(c.World()), "Describe": second(c.Describe()), "StopTimeline": c.StopTimeline(),
		"Join": second(c.Join(background, dtrain.JoinParams{})), "Close": c.Close(),
		"Serve": second(c.Serve(background, dtrain.ServeParams{})), "Alloc": second(dtrain.Alloc[byte](c, 1)),
		"Barrier":   dtrain.Barrier(background, comm),
		"AllReduce": dtrain.AllReduce(background, comm, x, dtrain.Sum),
		"Recv":      second(dtrain.Recv(background, comm, x, 0, 0)), "Duplicate": second(comm.Duplicate()),
		"StartBarrier": second(dtrain.StartBarrier(comm)), "Shrink": second(comm.Shrink()),
		"CreateGroup":    second(comm.CreateGroup([]int{0}, 0)),
		"PrepareBarrier": second(dtrain.PrepareBarrier(comm)), "Abort": comm.Abort(""), "Err": comm.Err(),
		"Failed": second(comm.Failed()), "Comm.Close": comm.Close(), "Split": second(comm.Split(0, 0)),
		"With":          dtrain.Barrier(background, comm.With(dtrain.Params{Priority: 1})),
		"NewTable":      second(dtrain.NewTable[float32](comm, "u", dtrain.TableParams{Length: 1})),
		"NewGraph":      second(dtrain.NewGraph(comm, dtrain.GraphParams{Kind: dtrain.Ring})),
		"NewGradients":  second(dtrain.NewGradients(comm, dtrain.GradientsParams{})),
		"NewCompressor": second(dtrain.NewCompressor(comm, dtrain.CompressorParams{})),
		"Push":          second(table.Push(background, 0, x)), "StartPull": second(table.StartPull(0, x)),
		"States": second(table.States()), "Table.Close": table.Close(),
		"SetConsistency": table.SetConsistency(dtrain.TableParams{}),
		"Table.With":     table.With(dtrain.Params{Priority: 1}).Clock(background),
		"SaveCheckpoint": second(dtrain.SaveCheckpoint(background, []dtrain.AnyTable{table}, 1,
			dtrain.CheckpointParams{})),
		"Submit":              dtrain.Submit(background, queue, "x", x, x, dtrain.Sum),
		"StartJoinGradients":  second(dtrain.StartJoinGradients(queue)),
		"Queue.Close":         queue.Close(),
		"NeighborAverage":     dtrain.NeighborAverage(background, graph, x, x),
		"SelfWeight":          second(graph.SelfWeight()),
		"Graph.Close":         graph.Close(),
		"CompressedAllReduce": dtrain.CompressedAllReduce(background, compressor, x[:compressed], x[:compressed], dtrain.Sum),
		"Reset":               compressor.Reset(),
		"Compressor.Close":    compressor.Close(),
		"Wait":                second(request.Wait(background)), "Result": second(request.Result()),
		"Cancel": request.Cancel(), "Start": request.Start(), "Request.Close": request.Close(),
		"Append": writer.Append(nil), "Writer.Close": writer.Close(),
		"Memory.Close": memory.Close(),
	}
}

var compressed int // elements of the compressor

func TestCopies(t *testing.T) {
	c, comm := alone(t)
	job := copied(c) // no call is in it
	table, err := dtrain.NewTable[float32](comm, "t", dtrain.TableParams{Length: 1})
	check(t, err)
	queue, err := dtrain.NewGradients(comm, dtrain.GradientsParams{})
	check(t, err)
	graph, err := dtrain.NewGraph(comm, dtrain.GraphParams{Kind: dtrain.Full})
	check(t, err)
	compressor, err := dtrain.NewCompressor(comm, dtrain.CompressorParams{Kind: dtrain.CompressF16, Count: 1})
	check(t, err)
	memory, err := dtrain.Alloc[float32](c, 1)
	check(t, err)
	request, err := dtrain.PrepareRecv(comm, memory.Data, 0, 0)
	check(t, err)
	writer, err := dtrain.OpenWriter(filepath.Join(t.TempDir(), "records"))
	check(t, err)
	compressed = 1
	for name, err := range uses(job, copied(comm), copied(table), copied(queue), copied(graph),
		copied(compressor), copied(request), copied(writer), copied(memory)) {
		t.Run(name, func(t *testing.T) { said(t, err, "is a copy") })
	}
	<-copied(request).Done()
	check(t, dtrain.Barrier(background, comm)) // the originals still work
	check(t, writer.Close())
	check(t, c.Close())
}

func TestZeroValues(t *testing.T) {
	compressed = 0
	for name, err := range uses(new(dtrain.Context), new(dtrain.Comm), new(dtrain.Table[float32]),
		new(dtrain.Gradients), new(dtrain.Graph), new(dtrain.Compressor), new(dtrain.Request),
		new(dtrain.Writer), new(dtrain.Memory[float32])) {
		t.Run(name, func(t *testing.T) { said(t, err, "was not made by a function of dtrain") })
	}
}

// TestNil uses the nil that Split returns to a rank outside of all groups.
func TestNil(t *testing.T) {
	comm, err := world.Split(-1, 0)
	check(t, err)
	equal(t, []int{comm.Rank(), comm.Size()}, []int{-1, -1})
	for _, err := range []error{dtrain.Barrier(background, comm), comm.Err(), comm.Close(),
		dtrain.AllReduce(background, comm, []float32{1}, dtrain.Sum), second(dtrain.StartBarrier(comm)),
		second(comm.Duplicate()), dtrain.Barrier(background, comm.With(dtrain.Params{Priority: 1})),
		second(dtrain.NewGraph(comm, dtrain.GraphParams{Kind: dtrain.Ring})),
		second(dtrain.Recv(background, comm, []byte{1}, 0, 0))} {
		said(t, err, "is nil")
	}
}

// TestVetSeesCopies runs `go vet` on a program that copies a handle of each kind.
func TestVetSeesCopies(t *testing.T) {
	if world.Rank() != 0 || world.Size() > 1 {
		t.Skip("alone")
	}
	file := filepath.Join(t.TempDir(), "copies.go")
	check(t, os.WriteFile(file, []byte(`package main

import "dtrain.org/dtrain"

func take(c dtrain.Context, m dtrain.Comm, t dtrain.Table[float32], q dtrain.Gradients, g dtrain.Graph) {}

func keep(c dtrain.Compressor, r dtrain.Request, w dtrain.Writer, i dtrain.Reader, s dtrain.Server) {}

func main() {}
`), 0o600))
	out, err := exec.Command("go", "vet", file).CombinedOutput()
	equal(t, err != nil, true)
	equal(t, strings.Count(string(out), "passes lock by value"), 10)
}
