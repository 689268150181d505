package dtrain

// SPDX-License-Identifier: Apache-2.0

// #include <dtrain.h>
import "C"

import (
	"fmt"
	"strings"

	"dtrain.org/dtrain/internal/capi"
)

// Status says how a call failed; it is an error itself, for errors.Is(err, dtrain.ErrPeer).
type Status int32

// Statuses of failed calls.
const (
	ErrInvalid     Status = C.DTRAIN_ERR_INVALID
	ErrNoMemory    Status = C.DTRAIN_ERR_NO_MEMORY
	ErrUnsupported Status = C.DTRAIN_ERR_UNSUPPORTED
	ErrVersion     Status = C.DTRAIN_ERR_VERSION
	ErrState       Status = C.DTRAIN_ERR_STATE // closed, not finished, after a fork, ...
	ErrBusy        Status = C.DTRAIN_ERR_BUSY
	ErrTimeout     Status = C.DTRAIN_ERR_TIMEOUT
	ErrCanceled    Status = C.DTRAIN_ERR_CANCELED
	ErrTruncated   Status = C.DTRAIN_ERR_TRUNCATED
	ErrNotFound    Status = C.DTRAIN_ERR_NOT_FOUND
	ErrLimit       Status = C.DTRAIN_ERR_LIMIT
	ErrCorrupt     Status = C.DTRAIN_ERR_CORRUPT
	ErrConfig      Status = C.DTRAIN_ERR_CONFIG
	ErrIO          Status = C.DTRAIN_ERR_IO
	ErrTransport   Status = C.DTRAIN_ERR_TRANSPORT
	ErrAuth        Status = C.DTRAIN_ERR_AUTH
	ErrPeer        Status = C.DTRAIN_ERR_PEER // call Comm.Shrink to continue
	ErrAborted     Status = C.DTRAIN_ERR_ABORTED
	ErrMismatch    Status = C.DTRAIN_ERR_MISMATCH // ranks made different calls
	ErrFenced      Status = C.DTRAIN_ERR_FENCED   // the group went on without this rank
	ErrDevice      Status = C.DTRAIN_ERR_DEVICE
	ErrInternal    Status = C.DTRAIN_ERR_INTERNAL
)

// Name is the status's name in the C API.
func (status Status) Name() string { return capi.Status_name(int32(status)) }

func (status Status) Error() string { return "dtrain: " + capi.Status_text(int32(status)) }

// Error is the error of a failed call: every error of this package is one, or wraps one. errors.Is
// compares it with a Status; it also finds the error of a context.Context or of a function of the
// program that caused it.
type Error struct {
	Status Status
	Rank   int    // the rank that failed, if the library knows it, else -1
	Text   string // what failed, where, and what to do
	cause  error  // the error of a context.Context or of a function of the program, or nil
}

func (e *Error) Error() string { return "dtrain: " + e.Text }

// Is reports whether target is the status of the error.
func (e *Error) Is(target error) bool {
	status, ok := target.(Status)
	return ok && status == e.Status
}

// Unwrap returns the error of the context.Context that ended the call, or of a function of the
// program (AllGather, Place) that failed, or nil.
func (e *Error) Unwrap() error { return e.cause }

func errorOf(failure *capi.Failure) error {
	if failure == nil {
		return nil
	}
	return makeError(failure)
}

func makeError(failure *capi.Failure) *Error {
	return &Error{Status: Status(failure.Status), Rank: int(failure.Rank), Text: failure.Text}
}

// whole refuses a text with a character 0, at which C would end it.
func whole(what, text string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return errorf(ErrInvalid, "%s %q contains a character 0 (NUL)", what, text)
	}
	return nil
}

func errorf(status Status, format string, arguments ...any) *Error {
	return &Error{Status: status, Rank: -1, Text: fmt.Sprintf(format, arguments...)}
}
