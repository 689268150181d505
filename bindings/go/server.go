package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"time"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Server is a parameter server in this process; the program dtrain-server is a stand-alone one.
type Server struct{ handle }

// ServeParams says how a server joins its job; the zero value means the environment.
type ServeParams struct {
	Rendezvous           string // as in JoinParams
	Size, Servers, Index int    // number of workers, number of servers, index of this server
	Timeout              time.Duration
	AllGather            func(mine []byte) ([][]byte, error) // as in JoinParams
}

// Serve joins a job as a server, which then serves in the background. The deadline of ctx ends the
// call, but not its cancellation.
func (c *Context) Serve(ctx context.Context, params ServeParams) (*Server, error) {
	if err := first(c.check(), whole("the rendezvous", params.Rendezvous)); err != nil {
		return nil, err
	}
	timeout, err := blockingTimeout(ctx, params.Timeout)
	if err != nil {
		return nil, err
	}
	p := capi.NewServer_params()
	defer capi.DeleteServer_params(p)
	p.SetSize(int32(clamp(params.Size)))
	p.SetServers(int32(clamp(params.Servers)))
	p.SetIndex(int32(clamp(params.Index)))
	p.SetTimeout_ns(timeout)
	exchange, err := exchangeOf(p, params.AllGather, params.Size, params.Servers)
	if err != nil {
		return nil, err
	}
	defer exchange.drop()
	where := rendezvous(params.Rendezvous, params.AllGather != nil)
	made, err := c.object.make("server", capi.Server_destroy, func(handle uintptr, made *uintptr) error {
		return exchange.explain(capi.Server_create(handle, where, p.Swigcptr(), unsafe.Pointer(made)))
	})
	if err != nil {
		return nil, err
	}
	server := new(Server)
	server.of(made)
	return server, nil
}

// Wait waits until all workers have left; it returns the error if the job failed, or that of ctx.
func (s *Server) Wait(ctx context.Context) error {
	const slice = 20 * time.Millisecond
	for {
		inProgress := false
		err := s.call(func(handle uintptr) *capi.Failure {
			failure := capi.Server_wait(handle, int64(slice))
			if failure != nil && failure.Status > 0 {
				inProgress = true
				return nil
			}
			return failure
		})
		if !inProgress {
			return err
		}
		if reason := ctx.Err(); reason != nil {
			return waitEnded(reason)
		}
	}
}

// Stats returns what the server has counted, as text for Prometheus.
func (s *Server) Stats() (string, error) {
	handle, err := s.enter()
	if err != nil {
		return "", err
	}
	defer s.object.leave()
	return longText(func(buffer unsafe.Pointer, length int64) int64 {
		return capi.Stats_server(handle, buffer, length)
	}), nil
}

// Close ends the server; workers that still need it get ErrPeer.
func (s *Server) Close() error { return s.close() }

// ServerWeights returns TableParams.Weights for `dedicated` servers followed by `serving` workers
// that serve. They minimize the load of the busiest link.
func ServerWeights(workers, dedicated, serving int) ([]uint32, error) {
	if workers < 0 || dedicated < 0 || serving < 0 || dedicated+serving > 1<<20 {
		return nil, errorf(ErrInvalid, "server weights: %d dedicated and %d serving", dedicated, serving)
	}
	weights := make([]uint32, dedicated+serving)
	return weights, errorOf(capi.Server_weights(uint32(clamp(workers)), uint32(dedicated),
		uint32(serving), start(weights)))
}
