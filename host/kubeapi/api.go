// SPDX-License-Identifier: Apache-2.0

// Package kubeapi is the Kubernetes side of the host functions. It serves the api_*, cache_* and
// event_record operations of abi/ABI.md under a policy, applies declared results, changes
// finalizers, and reports missing rights. Package kinds finds the kinds of the API server.
//
//	client, err := kubeapi.NewClient(restConfig)
//	resolver := kinds.NewResolver(client, logger)
//	kind, err := resolver.Resolve(ctx, "configmapgenerators.examples.wasmctl.dev")
//	api, err := kubeapi.New(kubeapi.Config{
//		Client: client, Resolver: resolver, Controller: "configmapgenerator", Logger: logger,
//		Policy: kubeapi.NewModulePolicy(kind, nil, manifest.Capabilities),
//	})
//	response := api.Call(ctx, abi.OpAPIGet, request)
//
// A guest's request passes five checks, and the first failed one determines the answer: its keys
// (decode, BAD_REQUEST), its kind (Resolver, 404), its scope and identity (locate, BAD_REQUEST),
// the policy (DENIED), and its body (unpack, BAD_REQUEST). Only then, something is sent.
package kubeapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/redact"
)

// maxManager is the API server's limit on the name of a field manager, in
// bytes.
const maxManager = 128

// Config configures an API. Client, Resolver and Controller are required.
type Config struct {
	Client   *Client
	Resolver *kinds.Resolver
	// Controller is the controller's name. The field manager of its writes is "wasmctl/" and this
	// name, unless a request has its own.
	Controller string
	// FormerManagers are the field managers of the programs that the module replaces. Declare takes the
	// fields over that they own.
	FormerManagers []string
	// Reconciled is the kind of the objects that runs are about. If it is empty, a write is not checked
	// for whether its object was replaced.
	Reconciled kinds.Kind
	// Policy has the rights of the module. If nil, everything is denied.
	Policy *Policy
	// Gate refuses every write while it is closed. If nil, it is always open.
	Gate Gate
	// Cache serves cache_get and cache_list. If nil, they return StatusUnsupported.
	Cache Cache
	// Children tells Declare which children of an object are in the cache. If nil, nothing is
	// pruned, and every child is sent each time.
	Children Children
	// Rate is the maximum number of requests to the API server per second; see WithRate.
	Rate int64
	// Account counts the memory of operations. If nil, it is not counted.
	Account Account
	// Secrets hides the values of Secrets in the notes of events. If nil, none are hidden.
	Secrets *redact.Values
	// Observer, if not nil, is notified of every operation after its answer.
	Observer Observer
	// Logger receives the API server's warnings and unknown keys of requests, each once. If nil, it
	// is slog's default.
	Logger *slog.Logger
}

// API serves the operations of one controller, and applies its declared results. It is safe for
// concurrent use. Between calls it only remembers its logged texts and the facts that Declare
// needs, both within limits. Only Run starts goroutines.
type API struct {
	cfg     Config
	manager string
	limits  *limiter
	dry     DryRun
	audits  bool
	events  *events.Recorder
	scope   *byte // of the module's indexes; only its address matters

	*lasting
}

// lasting is the state of an API between calls. The APIs of WithPolicy share it.
type lasting struct {
	memory      memory
	unknownKeys atomic.Uint64
	logged      once
	refused     refusals
	contested   contested
}

// New returns the operations for one controller. It sends nothing.
func New(c Config) (*API, error) {
	if c.Client == nil || c.Resolver == nil || c.Controller == "" {
		return nil, errors.New("kubeapi: client, resolver and controller are needed")
	}
	manager := "wasmctl/" + c.Controller
	if len(manager) > maxManager {
		return nil, fmt.Errorf("controller[%s]: name has %d bytes, the limit is %d for the field manager %q",
			c.Controller, len(c.Controller), maxManager-len("wasmctl/"), "wasmctl/NAME")
	}
	c.Logger, c.Policy = cmp.Or(c.Logger, slog.Default()).With("controller", c.Controller), cmp.Or(c.Policy, NewPolicy(nil))
	recorder, err := NewRecorder(c.Client, c.Gate, events.Config{Controller: c.Controller, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	return &API{
		cfg: c, manager: manager, limits: newLimiter(c.Rate, &limitHits{}), events: recorder, scope: new(byte), lasting: &lasting{},
	}, nil
}

// WithPolicy returns the same API under another policy, or nil for none. It serves the next
// revision of a module, while runs of the previous one continue under theirs. Both share their
// state between calls, except for indexes, and one Run serves both.
func (a *API) WithPolicy(p *Policy) *API {
	other := *a
	other.cfg.Policy, other.scope = cmp.Or(p, NewPolicy(nil)), new(byte)
	return &other
}

// WithObserver returns the same API with another observer, or nil for none. It is for runs that do
// not count.
func (a *API) WithObserver(o Observer) *API {
	other := *a
	other.cfg.Observer = o
	return &other
}

// Call runs one operation. The request and the answer are those of ABI.md, sections 6 and 7. It
// accepts any bytes, does not retain req, and returns soon after ctx ends, with StatusCancelled.
// config_get, and cache_* without a cache, return StatusUnsupported.
//
// If the API server delays a request (429, or 5xx with Retry-After), it is sent again at the
// requested time, up to ten times. A read whose connection breaks is also sent again, after a
// second. No other write is ever sent twice.
func (a *API) Call(ctx context.Context, op abi.Op, req []byte) abi.Response {
	if !a.serves(op) {
		return refuse(abi.StatusUnsupported, fmt.Sprintf("this host does not serve %s here", op))
	}
	if len(req) > abi.MaxBytes {
		return refuse(abi.StatusTooLarge, fmt.Sprintf("request of %s: %d bytes, the limit is %d", op, len(req), abi.MaxBytes))
	}
	if op == abi.OpEventRecord {
		return a.recordEvent(ctx, req)
	}
	r := a.newRequest(op)
	defer r.ledger.close()
	if refused := a.admit(ctx, r, req); refused != nil {
		return *refused
	}
	if err := a.confine(ctx, r); err != nil {
		return a.failed(ctx, r, err)
	}
	if !slices.Contains(opsCache, op) {
		return a.send(ctx, r)
	}
	if res := a.cached(ctx, r); !r.elsewhere {
		return a.seen(ctx, r, res)
	}
	if refused := r.askServer(); refused != nil {
		return *refused
	}
	return a.send(ctx, r)
}

// newRequest returns a request that has not been decoded. The caller must close its ledger.
func (a *API) newRequest(op abi.Op) *request {
	r := &request{op: op}
	r.own.account, r.ledger = a.cfg.Account, &r.own
	return r
}

// admit makes all checks before a request is carried out. It returns the answer for a request that
// fails one.
func (a *API) admit(ctx context.Context, r *request, req []byte) *abi.Response {
	refused := func(res abi.Response) *abi.Response { return &res }
	unknown, err := r.decode(req)
	if err != nil {
		return refused(misread(err))
	}
	a.report(r.op, unknown)
	gvk, err := r.gvk()
	if err != nil {
		return refused(refuse(abi.StatusBadRequest, err.Error()))
	}
	kind, err := a.cfg.Resolver.ResolveGVK(ctx, gvk)
	if err != nil {
		return refused(fromError(ctx, abi.OpAPIGet, err)) // no write was sent
	}
	if err := r.locate(kind); err != nil {
		return refused(refuse(abi.StatusBadRequest, err.Error()))
	}
	if denied := a.check(ctx, r, verbs[r.op]); denied != nil {
		return refused(denied.response())
	}
	if denied := a.checkReads(ctx, r); denied != nil {
		return refused(denied.response())
	}
	subject, own := a.subjectOf(ctx, r)
	if err := r.unpack(subject, own); err != nil {
		return refused(misread(err))
	}
	return nil
}

// misread returns the answer for a request that cannot be decoded.
func misread(err error) abi.Response {
	if own, ok := errors.AsType[*refusal](err); ok {
		return own.response()
	}
	return refuse(abi.StatusBadRequest, err.Error())
}

// Admits reports whether Call would carry an operation out, which must be a read or a write. If
// not, it returns the answer of Call. It sends only the requests that find the kind.
func (a *API) Admits(ctx context.Context, op abi.Op, req []byte) (answer abi.Response, ok bool) {
	if !a.serves(op) || op == abi.OpEventRecord {
		return refuse(abi.StatusUnsupported, fmt.Sprintf("this host does not serve %s here", op)), false
	}
	r := a.newRequest(op)
	defer r.ledger.close()
	if refused := a.admit(ctx, r, req); refused != nil {
		return *refused, false
	}
	return abi.Response{}, true
}

// serves reports whether this package serves an operation.
func (a *API) serves(op abi.Op) bool {
	if slices.Contains(opsCache, op) {
		return a.cfg.Cache != nil
	}
	return verbs[op] != "" || op == abi.OpEventRecord
}

// UnknownKeys returns the number of unknown keys in requests so far, which were ignored.
func (a *API) UnknownKeys() uint64 { return a.unknownKeys.Load() }

// report counts the keys of a request that this host does not know, and logs each of them once.
func (a *API) report(op abi.Op, unknown []string) {
	a.unknownKeys.Add(uint64(len(unknown)))
	for _, key := range unknown {
		if key = shorten(key); a.logged.first(string(op) + "\x00" + key) {
			a.cfg.Logger.Warn("ignoring an unknown key in a request of the module", "op", string(op), "key", key)
		}
	}
}

// warnings logs the warnings of the API server, each text once.
type warnings struct{ *API }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	const warning = 299 // RFC 7234: miscellaneous persistent warning, the only code that Kubernetes uses
	if code != warning || text == "" {
		return
	}
	if text = shorten(text); w.logged.first(text) {
		w.cfg.Logger.Warn("warning from the API server", "warning", text)
	}
}
