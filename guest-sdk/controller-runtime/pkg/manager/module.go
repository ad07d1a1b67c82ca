// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	goruntime "runtime"
	"strings"
	"sync"

	"github.com/go-logr/logr"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
	"sigs.k8s.io/controller-runtime/pkg/internal/hostevents"
	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	"sigs.k8s.io/controller-runtime/pkg/internal/rest"
	"sigs.k8s.io/controller-runtime/pkg/internal/rules"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// module is the manager of a module.
type module struct {
	*connection
	options   Options
	given     Options // as passed by the program, without defaults
	declarers []declare.Declarer
	runnables runnables
	started   bool // Start was called
	elected   chan struct{}
	elect     func() // closes elected
	converts  conversion.Registry
}

// New returns a manager.
func New(cfg *rest.Config, options Options) (Manager, error) {
	options.modernize()
	given := options
	if options.Logger.GetSink() == nil {
		options.Logger = logf.Log
	}
	if options.Controller.Logger.GetSink() == nil {
		options.Controller.Logger = options.Logger
	}
	if options.WebhookServer == nil {
		options.WebhookServer = webhook.NewServer(webhook.Options{})
	}
	c, err := connect(cfg, &options)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	m := &module{connection: c, options: options, given: given, elected: make(chan struct{}), converts: conversion.NewRegistry()}
	m.runnables.life = context.Background()
	m.elect = sync.OnceFunc(func() { close(m.elected) })
	return m, nil
}

// Add implements Manager.
func (m *module) Add(r Runnable) error {
	if m.started {
		return fmt.Errorf("manager: Add(%s): the manager has started: a module adds its controllers and runnables before mgr.Start", nameOf(r))
	}
	if d, ok := r.(declare.Declarer); ok {
		m.declarers = append(m.declarers, d)
		return nil
	}
	switch r.(type) {
	case *certwatcher.CertWatcher, *Server, webhook.Server, metricsserver.Server, cluster.Cluster, cache.Cache:
		m.options.Logger.Info("has no effect in a module: the host does this", "runnable", nameOf(r))
		return nil
	}
	if program.Without(program.Runnables) {
		m.options.Logger.Info("is left out of the module", "runnable", nameOf(r))
		return nil
	}
	if len(m.runnables.waiting) == 0 {
		m.declarers = append(m.declarers, &m.runnables)
	}
	m.runnables.add(r)
	return nil
}

// nameOf returns the name of a Runnable. For a function it is its place in the
// source.
func nameOf(r Runnable) string {
	if v := reflect.ValueOf(r); v.Kind() == reflect.Func {
		if f := goruntime.FuncForPC(v.Pointer()); f != nil {
			file, line := f.FileLine(v.Pointer())
			return fmt.Sprintf("%s at %s:%d", f.Name(), file, line)
		}
	}
	return fmt.Sprintf("%T", r)
}

// Start implements Manager.
func (m *module) Start(ctx context.Context) error {
	// Goroutines of main may wait for a result that is available by now, and
	// then declare controllers.
	settle()
	m.started, m.runnables.life = true, ctx
	if len(m.declarers) == 0 {
		return errors.New("manager: has no controllers; call SetupWithManager of each reconciler before mgr.Start")
	}
	if err := program.Start(m.declared); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// declared returns a function that finds a controller among those that main has
// declared.
func (m *module) declared() program.Choose {
	all := make([]*declare.Controller, 0, len(m.declarers))
	for _, d := range m.declarers {
		c, err := d.Declare()
		if err != nil {
			return func(string) (wasmctl.Reconciler, error) { return wasmctl.Reconciler{}, err }
		}
		c.Base = m.options.BaseContext
		if c.Logger == nil {
			c.Logger = func(*reconcile.Request) logr.Logger { return m.options.Logger }
		}
		run := c.Reconcile
		c.Reconcile = func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			m.elect()
			return run(ctx, req)
		}
		all = append(all, c)
	}
	m.note(all)
	shares := m.shares(all)
	return func(name string) (wasmctl.Reconciler, error) {
		i, err := choose(all, name)
		if err != nil {
			return wasmctl.Reconciler{}, err
		}
		r, err := m.reconciler(all[i])
		r.Manifest.Webhooks, r.Manifest.Conversions = shares[i].webhooks, shares[i].conversions
		return r, err
	}
}

// reconciler returns the reconciler of the controller that the module runs as.
func (m *module) reconciler(c *declare.Controller) (wasmctl.Reconciler, error) {
	r, err := c.Reconciler(m.GetScheme())
	if err != nil {
		return r, err
	}
	if err := m.restrict(c, &r.Manifest); err != nil {
		return r, err
	}
	if m.events || hostevents.Wanted() {
		r.Manifest.Capabilities = append(r.Manifest.Capabilities, recordsEvents)
	}
	asked, bare, err := rules.Capabilities(m.GetScheme())
	if len(bare) > 0 {
		m.options.Logger.Info("a rule for all resources of a group is left out, because the scheme has no kinds of that group: write a ClusterRole that names the group and its resources to a file, for wasmctl build --roles FILE",
			"groups", strings.Join(bare, ", "))
	}
	r.Manifest.Capabilities = append(r.Manifest.Capabilities, asked...)
	return r, err
}

// restrict applies the options of the manager's cache to a manifest, and sets
// the kinds that the program reads from the host's cache.
func (m *module) restrict(c *declare.Controller, manifest *wasmctl.Manifest) error {
	if c.Anchor != "" {
		manifest.For.FieldSelector = "metadata.name=" + c.Anchor
		return nil
	}
	wide, err := c.Wide(m.GetScheme())
	if err != nil {
		return err
	}
	m.bound(manifest, wide)
	m.cache.Watch(declare.Kinds(manifest))
	return nil
}

// recordsEvents is the right to record events, which each module gets.
var recordsEvents = wasmctl.Capability{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}}

// choose returns the index of the only controller, or of the controller with
// that name.
func choose(all []*declare.Controller, name string) (int, error) {
	if len(all) == 1 {
		return 0, nil
	}
	names := make([]string, len(all))
	for i, c := range all {
		if names[i] = c.Name; c.Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("manager: the module has %d controllers, and none is named %q: run it once for each, with --name and one of %s",
		len(all), name, strings.Join(names, ", "))
}

// Elected implements Manager.
func (m *module) Elected() <-chan struct{} { return m.elected }

// AddMetricsServerExtraHandler implements Manager.
func (*module) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck implements Manager.
func (*module) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck implements Manager.
func (*module) AddReadyzCheck(string, healthz.Checker) error { return nil }

// GetWebhookServer implements Manager.
func (m *module) GetWebhookServer() webhook.Server { return m.options.WebhookServer }

// GetConverterRegistry implements Manager.
func (m *module) GetConverterRegistry() conversion.Registry { return m.converts }

// GetLogger implements Manager.
func (m *module) GetLogger() logr.Logger { return m.options.Logger }

// GetControllerOptions implements Manager.
func (m *module) GetControllerOptions() config.Controller { return m.options.Controller }
