// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

const finalizerName = "test.wasmctl.dev/cleanup"

// pack returns an object as stored.
func pack(t testing.TB, metadata map[string]any) []byte {
	t.Helper()
	b, err := abi.AppendValue(nil, map[string]any{
		"apiVersion": "example.com/v1", "data": map[string]any{"a": int64(1), "list": []any{1.5, nil, true, "x"}}, "kind": "Web",
		"metadata": metadata, "spec": map[string]any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// cluster is an API server with one object, which is also the store: it logs the requests, and reports writes to runs.
type cluster struct {
	t   testing.TB
	log []string

	gone       bool
	deleting   bool
	finalizers []any
	paused     string
	version    int

	refuse map[string]error // by the first word of the log line
}

func (c *cluster) lookup(abi.Key) Object {
	if c.gone {
		return nil
	}
	return raw(c.object())
}

func (c *cluster) object() []byte {
	meta := map[string]any{"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": strconv.Itoa(c.version)}
	if c.deleting {
		meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	if len(c.finalizers) > 0 {
		meta["finalizers"] = c.finalizers
	}
	if c.paused != "" {
		meta["annotations"] = map[string]any{PausedAnnotation: c.paused}
	}
	return pack(c.t, meta)
}

// did logs a request and responds to it.
func (c *cluster) did(ctx context.Context, word string, args ...any) error {
	c.log = append(c.log, fmt.Sprintln(append([]any{word}, args...)...))
	c.log[len(c.log)-1] = c.log[len(c.log)-1][:len(c.log[len(c.log)-1])-1]
	if err := c.refuse[word]; err != nil {
		return err
	}
	c.version++
	if run := abi.RunFrom(ctx); run != nil {
		run.Wrote(abi.Write{Resource: "webs", Group: "example.com", Key: run.Key, UID: "u1", ResourceVersion: strconv.Itoa(c.version)})
	}
	return nil
}

func (c *cluster) Declare(ctx context.Context, of Owner, d *abi.Declared) error {
	if h, err := readHead(of.Object, finalizerName); err != nil || h.uid != "u1" || of.Revision != 7 {
		c.t.Errorf("declared for %q, by revision %d: %v", of.Object, of.Revision, err)
	}
	return c.did(ctx, "declare", len(d.Apply), d.Prune, d.Force, string(d.Status))
}

func (c *cluster) AddFinalizer(ctx context.Context, _ []byte, name string) ([]byte, error) {
	if err := c.did(ctx, "add", name); err != nil {
		return nil, err
	}
	c.finalizers = append(c.finalizers, name)
	return c.object(), nil
}

func (c *cluster) RemoveFinalizer(ctx context.Context, _ []byte, name string) error {
	if err := c.did(ctx, "remove", name); err != nil {
		return err
	}
	c.finalizers = nil
	c.gone = c.deleting
	return nil
}

func (c *cluster) Inspect(_ context.Context, w abi.Write) ([]byte, error) {
	c.log = append(c.log, "inspect "+w.Key.String())
	if err := c.refuse["inspect"]; err != nil {
		return nil, err
	}
	return []byte(`{"metadata":{"resourceVersion":"` + strconv.Itoa(c.version) + `"},"status":{"at":` + strconv.Itoa(c.version) + `}}`), nil
}

// on makes an applier use the cluster, and logs the calls of the guest.
func (c *cluster) on(s *script) func(*Config) {
	inner := s.reconcile
	s.reconcile = func(ctx context.Context, req *abi.Request) (abi.Result, error) {
		entry := "reconcile"
		if s.finalizing {
			entry = "finalize"
		}
		c.log = append(c.log, entry)
		return inner(ctx, req)
	}
	return func(cfg *Config) {
		cfg.Cluster, cfg.Lookup, cfg.Finalizer = c, c.lookup, finalizerName
	}
}

var errAPI = errors.New("the API server has gone away")

func conflict(reason string) error {
	return fmt.Errorf("patch: %w", &abi.ResultError{Class: abi.ErrorConflict, Reason: reason, Message: "somebody else was first"})
}
