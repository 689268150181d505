package dtrain

// SPDX-License-Identifier: Apache-2.0

// #include <dtrain.h>
import "C"

import (
	"context"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// GraphKind is a kind of Graph.
type GraphKind uint32

// Kinds of graphs.
const (
	Ring        GraphKind = C.DTRAIN_GRAPH_RING
	Grid        GraphKind = C.DTRAIN_GRAPH_GRID
	Exponential GraphKind = C.DTRAIN_GRAPH_EXPONENTIAL
	Full        GraphKind = C.DTRAIN_GRAPH_FULL
	Custom      GraphKind = C.DTRAIN_GRAPH_CUSTOM
)

// GraphParams has the fields of dtrain_graph_params_t; all but Kind are for Custom.
type GraphParams struct {
	Kind             GraphKind
	RowsOnly, Signed bool
	In               []int32   // ranks whose values this rank gets
	InWeights        []float64 // nil on all ranks: Metropolis-Hastings weights
	Out              []int32   // ranks that get this rank's value; nil: all ranks that name it
	SelfWeight       float64
}

// Graph says which ranks average with which (docs/DECENTRALIZED.md). Its operations are collectives
// of its communicator that wait for neighbors only.
type Graph struct {
	operator
	in, out int
}

// NewGraph makes a graph. Collective.
func NewGraph(comm *Comm, params GraphParams) (*Graph, error) {
	if params.InWeights != nil && len(params.InWeights) != len(params.In) {
		return nil, errorf(ErrInvalid, "there are %d neighbors (In) and %d weights (InWeights)",
			len(params.In), len(params.InWeights))
	}
	p := capi.NewGraph_params()
	defer capi.DeleteGraph_params(p)
	p.SetKind(uint32(params.Kind))
	flags := uint64(0)
	if params.RowsOnly {
		flags |= C.DTRAIN_GRAPH_ROWS_ONLY
	}
	if params.Signed {
		flags |= C.DTRAIN_GRAPH_SIGNED
	}
	p.SetFlags(flags)
	p.SetSelf_weight(params.SelfWeight)
	p.SetIn_count(int32(len(params.In)))
	p.SetOut_count(int32(len(params.Out)))
	in := capi.CArray(start(params.In), 4*len(params.In))
	defer capi.Free(in)
	out := capi.CArray(start(params.Out), 4*len(params.Out))
	defer capi.Free(out)
	weights := capi.CArray(start(params.InWeights), 8*len(params.InWeights))
	defer capi.Free(weights)
	p.SetIn_neighbors(capi.Memory(in))
	p.SetOut_neighbors(capi.Memory(out))
	p.SetIn_weights(capi.Memory(weights))
	made, err := comm.made("graph", func(handle uintptr) *capi.Failure {
		capi.Graph_destroy(handle)
		return nil
	}, func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Graph_create(handle, p.Swigcptr(), unsafe.Pointer(made)))
	})
	if err != nil {
		return nil, err
	}
	g := new(Graph)
	g.of(made)
	g.context, g.comm = comm.context, comm.object
	g.in = int(capi.Graph_neighbors(made.handle, C.DTRAIN_GRAPH_IN, nil, nil, 0))
	g.out = int(capi.Graph_neighbors(made.handle, C.DTRAIN_GRAPH_OUT, nil, nil, 0))
	return g, nil
}

// Close frees the graph.
func (g *Graph) Close() error { return g.close() }

// With returns the same graph with parameters for its operations.
func (g *Graph) With(params Params) *Graph {
	other := &Graph{in: g.in, out: g.out}
	other.as(&g.operator, params)
	return other
}

// In returns the ranks whose values this rank gets, in ascending order, and their weights.
func (g *Graph) In() ([]int32, []float64, error) { return g.neighbors(C.DTRAIN_GRAPH_IN, g.in) }

// Out returns the ranks that get this rank's value, in ascending order, and their weights.
func (g *Graph) Out() ([]int32, []float64, error) { return g.neighbors(C.DTRAIN_GRAPH_OUT, g.out) }

func (g *Graph) neighbors(direction uint32, count int) ([]int32, []float64, error) {
	ranks, weights := make([]int32, count), make([]float64, count)
	err := g.call(func(handle uintptr) *capi.Failure {
		capi.Graph_neighbors(handle, direction, start(ranks), start(weights), int32(count))
		return nil
	})
	return ranks, weights, err
}

// SelfWeight is the weight of this rank's value.
func (g *Graph) SelfWeight() (weight float64, err error) {
	err = g.call(func(handle uintptr) *capi.Failure {
		return capi.Graph_self_weight(handle, unsafe.Pointer(&weight))
	})
	return weight, err
}

// SpectralGap tells how fast averages converge to the mean: 1 at once, 0 never.
func (g *Graph) SpectralGap() (gap float64, err error) {
	err = g.call(func(handle uintptr) *capi.Failure {
		return capi.Graph_spectral_gap(handle, unsafe.Pointer(&gap))
	})
	return gap, err
}

type neighborCall = func(graph uintptr, send, recv unsafe.Pointer, count uint64, dtype uint32,
	call *capi.Call) *capi.Failure

// among is an operation with `sent` blocks in send and `received` blocks in recv.
func among[T Element](function neighborCall, send []T, sent int, recv []T, received int) request {
	from, to := viewOf(send), viewOf(recv)
	count := from.count
	if sent != 1 {
		count = 0
		if sent > 0 {
			count = from.count / sent
		} else if received > 0 {
			count = to.count / received
		}
	}
	if from.count != count*sent || to.count != count*received {
		return request{err: errorf(ErrInvalid, "send has %d elements and recv %d, which are not %d and %d "+
			"equal blocks", from.count, to.count, sent, received)}
	}
	return request{post: func(graph uintptr, call *capi.Call) *capi.Failure {
		return function(graph, from.pointer, to.pointer, uint64(count), uint32(from.dtype), call)
	}, memory: []view{from, to}}
}

// NeighborAverage makes recv the weighted average of send and the neighbors' send; in place if they
// are the same.
func NeighborAverage[T Element](ctx context.Context, graph *Graph, send, recv []T) error {
	return done(graph.block(ctx, among(capi.Neighbor_average, send, 1, recv, 1)))
}

// NeighborAllGather fills recv with the neighbors' send, in the order of Graph.In.
func NeighborAllGather[T Element](ctx context.Context, graph *Graph, send, recv []T) error {
	return done(graph.block(ctx, among(capi.Neighbor_allgather, send, 1, recv, graph.in)))
}

// NeighborAllToAll sends one block of send to each rank of Graph.Out; recv gets one from each rank
// of Graph.In.
func NeighborAllToAll[T Element](ctx context.Context, graph *Graph, send, recv []T) error {
	return done(graph.block(ctx, among(capi.Neighbor_alltoall, send, graph.out, recv, graph.in)))
}

// StartNeighborAverage starts a NeighborAverage. Slices must be memory of Alloc or Register.
func StartNeighborAverage[T Element](graph *Graph, send, recv []T) (*Request, error) {
	return graph.launch(among(capi.Neighbor_average, send, 1, recv, 1))
}

// StartNeighborAllGather starts a NeighborAllGather.
func StartNeighborAllGather[T Element](graph *Graph, send, recv []T) (*Request, error) {
	return graph.launch(among(capi.Neighbor_allgather, send, 1, recv, graph.in))
}

// StartNeighborAllToAll starts a NeighborAllToAll.
func StartNeighborAllToAll[T Element](graph *Graph, send, recv []T) (*Request, error) {
	return graph.launch(among(capi.Neighbor_alltoall, send, graph.out, recv, graph.in))
}

// PrepareNeighborAverage prepares a NeighborAverage.
func PrepareNeighborAverage[T Element](graph *Graph, send, recv []T) (*Request, error) {
	return graph.prepared(among(capi.Neighbor_average, send, 1, recv, 1))
}

// PrepareNeighborAllGather prepares a NeighborAllGather.
func PrepareNeighborAllGather[T Element](graph *Graph, send, recv []T) (*Request, error) {
	return graph.prepared(among(capi.Neighbor_allgather, send, 1, recv, graph.in))
}

// PrepareNeighborAllToAll prepares a NeighborAllToAll.
func PrepareNeighborAllToAll[T Element](graph *Graph, send, recv []T) (*Request, error) {
	return graph.prepared(among(capi.Neighbor_alltoall, send, graph.out, recv, graph.in))
}
