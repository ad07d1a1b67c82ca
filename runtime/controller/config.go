package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Config says what a controller reconciles, and with what. Name, For, Module
// and Watches are needed; the rest has defaults.
type Config struct {
	// Name is the controller's name in logs and for guests.
	Name string
	// For is the kind that is reconciled.
	For Kind
	// Owns lists kinds whose owners of the kind For are reconciled when an object
	// of theirs changes. The watch must be another than For's.
	Owns []Kind
	// Deletes asks for a reconcile, without an object, after an object of For is
	// gone.
	Deletes bool
	// Module does the reconciling.
	Module applier.Module
	// Watches has the watches, which controllers share.
	Watches *watcher.Set

	// Concurrency is how many objects are reconciled at a time; 0 is
	// runner.DefaultConcurrency.
	Concurrency int
	// DrainTimeout is how long running reconciles may go on after a stop; 0 is
	// runner.DefaultDrainTimeout.
	DrainTimeout time.Duration
	// Backoff is the host's back-off (rule 19).
	Backoff applier.Backoff

	// OnOutcome is called after each reconcile, by several goroutines at once and
	// with the object still held: it must be quick. Nil drops outcomes.
	OnOutcome func(applier.Outcome)
	// Logger is told of progress; nil drops it.
	Logger *slog.Logger
}

// Kind is a kind and how it is watched.
type Kind struct {
	// Source is what is listed and watched.
	Source watcher.Source
	// GroupKind is what owner references name.
	GroupKind schema.GroupKind
	// ClusterScoped says that objects of the kind have no namespace.
	ClusterScoped bool
	// Optional lets reconciling start before the kind's watch has synced (rule
	// 10). Only read in Config.Owns.
	Optional bool
}

// Validate returns every reason why the config cannot be used, joined.
func (c *Config) Validate() error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, errors.New("name is needed"))
	}
	if c.Module == nil || c.Watches == nil {
		errs = append(errs, errors.New("module and watches are needed"))
	}
	for i, k := range append([]Kind{c.For}, c.Owns...) {
		if k.Source.Resource.Resource == "" || k.GroupKind.Kind == "" {
			errs = append(errs, fmt.Errorf("kind %d: resource and kind are needed", i))
		}
	}
	if c.Concurrency < 0 || c.DrainTimeout < 0 {
		errs = append(errs, errors.New("concurrency and drain timeout must not be negative"))
	}
	return errors.Join(errs...)
}
