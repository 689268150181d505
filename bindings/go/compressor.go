package dtrain

// SPDX-License-Identifier: Apache-2.0

// #include <dtrain.h>
import "C"

import (
	"context"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Compression is a way to compress an all-reduce (docs/COMPRESSION.md).
type Compression uint32

// Kinds of compression.
const (
	// from dtrain.h, by ./dev generate
	CompressF16      Compression = C.DTRAIN_COMPRESS_F16
	CompressBF16     Compression = C.DTRAIN_COMPRESS_BF16
	CompressInt8     Compression = C.DTRAIN_COMPRESS_INT8
	CompressTopK     Compression = C.DTRAIN_COMPRESS_TOPK
	CompressOneBit   Compression = C.DTRAIN_COMPRESS_ONEBIT
	CompressPowerSGD Compression = C.DTRAIN_COMPRESS_POWERSGD
	// the end of what is generated
)

// CompressorParams has the fields of dtrain_compressor_params_t; zero means the default.
type CompressorParams struct {
	Kind        Compression
	Count       int  // elements of the vector
	NoFeedback  bool // what a step does not send is lost
	Stochastic  bool // CompressInt8 rounds at random
	Block, Rank uint32
	Rows, Seed  uint64
	Matrices    []Matrix // of a vector that consists of several
	Ratio       float64
}

// Matrix is the shape of a matrix in a vector that CompressPowerSGD reduces.
type Matrix struct{ Rows, Columns uint64 }

// Compressor runs repeated all-reduces of one vector of float32. What a step does not send is added
// to the next one.
type Compressor struct {
	operator
	count int
}

// NewCompressor makes a compressor. Collective: all ranks pass the same parameters.
func NewCompressor(comm *Comm, params CompressorParams) (*Compressor, error) {
	p := capi.NewCompressor_params()
	defer capi.DeleteCompressor_params(p)
	p.SetKind(uint32(params.Kind))
	if params.Count > 0 {
		p.SetCount(uint64(params.Count))
	}
	flags := uint32(0)
	if params.NoFeedback {
		flags |= C.DTRAIN_COMPRESS_NO_FEEDBACK
	}
	if params.Stochastic {
		flags |= C.DTRAIN_COMPRESS_STOCHASTIC
	}
	p.SetFlags(flags)
	p.SetBlock(params.Block)
	p.SetRank(params.Rank)
	p.SetRows(params.Rows)
	matrices := capi.CArray(start(params.Matrices), int(unsafe.Sizeof(Matrix{}))*len(params.Matrices))
	defer capi.Free(matrices)
	p.SetMatrices(capi.Memory(matrices))
	p.SetMatrix_count(uint64(len(params.Matrices)))
	p.SetSeed(params.Seed)
	p.SetRatio(params.Ratio)
	made, err := comm.made("compressor", capi.Compressor_destroy,
		func(handle uintptr, made *uintptr) error {
			return errorOf(capi.Compressor_create(handle, p.Swigcptr(), unsafe.Pointer(made)))
		})
	if err != nil {
		return nil, err
	}
	c := &Compressor{count: params.Count}
	c.of(made)
	c.context = comm.context
	return c, nil
}

// Close frees the compressor; it does not wait for other ranks.
func (c *Compressor) Close() error { return c.close() }

// With returns the same compressor with parameters for its operations.
func (c *Compressor) With(params Params) *Compressor {
	other := &Compressor{count: c.count}
	other.as(&c.operator, params)
	return other
}

func compressed[T ~float32](c *Compressor, send, recv []T, op Op) request {
	if len(send) != c.count || len(recv) != c.count {
		return request{err: errorf(ErrInvalid, "the compressor is for %d elements; send has %d, recv %d",
			c.count, len(send), len(recv))}
	}
	from, to := viewOf(send), viewOf(recv)
	return request{post: func(compressor uintptr, call *capi.Call) *capi.Failure {
		return capi.Compressor_allreduce(compressor, from.pointer, to.pointer, uint32(op), call)
	}, memory: []view{from, to}}
}

// CompressedAllReduce makes recv approximately the Sum, or Avg, of all ranks' send; in place if
// they are the same. Its timeout or the deadline of ctx ends it, but not cancellation.
func CompressedAllReduce[T ~float32](ctx context.Context, compressor *Compressor, send, recv []T, op Op) error {
	return done(compressor.block(ctx, compressed(compressor, send, recv, op)))
}

// StartCompressedAllReduce starts a CompressedAllReduce. Slices must be memory of Alloc or
// Register.
func StartCompressedAllReduce[T ~float32](compressor *Compressor, send, recv []T, op Op) (*Request, error) {
	return compressor.launch(compressed(compressor, send, recv, op))
}

// Reset discards what earlier steps have kept; all ranks call it between the same two operations.
func (c *Compressor) Reset() error { return c.call(capi.Compressor_reset) }

// CompressionStats has counts since the compressor was made; Residual is the norm of what this rank
// keeps.
type CompressionStats struct {
	Operations, RawBytes, SentBytes uint64
	Residual                        float64
}

// Stats returns the counts. ErrBusy while an operation runs.
func (c *Compressor) Stats() (CompressionStats, error) {
	s := capi.NewCompression_stats()
	defer capi.DeleteCompression_stats(s)
	err := c.call(func(handle uintptr) *capi.Failure {
		return capi.Compressor_stats(handle, s.Swigcptr())
	})
	return CompressionStats{s.GetOperations(), s.GetRaw_bytes(), s.GetSent_bytes(), s.GetResidual()}, err
}
