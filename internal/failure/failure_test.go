// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/wasmctl/wasmctl/internal/failure"
)

func TestClass_KeepsTheTextAndIsMatched(t *testing.T) {
	err := fmt.Errorf("around: %w", failure.Denied.Wrap(io.EOF))
	if err.Error() != "around: EOF" || !errors.Is(err, failure.Denied) || !errors.Is(err, io.EOF) || errors.Is(err, failure.Usage) {
		t.Errorf("%v", err)
	}
	if failure.Usage.Wrap(nil) != nil {
		t.Error("nil has become an error")
	}
}

// TestOf_InnermostWins: the place that found the cause knows best what to do.
func TestOf_InnermostWins(t *testing.T) {
	err := failure.Module.Wrap(fmt.Errorf("connect: %w", failure.Kind.Wrap(io.EOF)))
	for want, err := range map[failure.Class]error{
		failure.Kind: err, failure.Usage: errors.Join(failure.Usage.Wrap(io.EOF), failure.Kind.Wrap(io.EOF)),
		"": failure.As(io.EOF, io.ErrClosedPipe),
	} {
		if got := failure.Of(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if failure.Of(failure.As(failure.Lost.Wrap(io.EOF), io.ErrClosedPipe)) != failure.Lost {
		t.Error("a match that is no class hides the class below")
	}
}
