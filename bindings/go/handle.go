package dtrain

// SPDX-License-Identifier: Apache-2.0

import "dtrain.org/dtrain/internal/capi"

// noCopy makes `go vet` report copies of the structs that embed it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// identity distinguishes a struct that a function of this package has made from copies of it, whose
// state would be out of date, and from zero values.
type identity struct {
	_    noCopy
	self *identity
}

func (i *identity) born() { i.self = i }

func (i *identity) check(what string) error {
	if i.self == i {
		return nil
	}
	return i.wrong(what)
}

func (i *identity) wrong(what string) error {
	if i.self == nil {
		return errorf(ErrState, "this %s was not made by a function of dtrain: the zero value cannot be "+
			"used", what)
	}
	return errorf(ErrState, "this %s is a copy of the struct that dtrain made; keep and copy the "+
		"pointer instead", what)
}

// handle is an object of the C API behind the struct that embeds it.
type handle struct {
	identity
	object *object
}

// of sets the object of the handle.
func (h *handle) of(made *object) {
	h.object = made
	h.born()
}

func (h *handle) check() error {
	if h.self == &h.identity {
		return nil
	}
	what := "handle"
	if h.object != nil {
		what = h.object.what
	}
	return h.wrong(what)
}

// enter keeps the object open until h.object.leave().
func (h *handle) enter() (uintptr, error) {
	if h.self != &h.identity { // faster than check()
		return 0, h.check()
	}
	return h.object.enter()
}

func (h *handle) close() error {
	if err := h.check(); err != nil {
		return err
	}
	return h.object.close()
}

func (h *handle) call(function func(uintptr) *capi.Failure) error {
	if err := h.check(); err != nil {
		return err
	}
	return h.object.call(function)
}
