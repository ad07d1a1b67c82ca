// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

const (
	// maxRuns is the maximum number of runs until an object is stable.
	maxRuns = 25
	// calmRuns is the number of consecutive runs without writes after which the object is stable,
	// whatever their results: for example, a back-off that goes on forever.
	calmRuns = 4
)

// fault is one way in which a request can fail.
type fault struct {
	name string
	// writes limits the fault to requests that write.
	writes bool
	code   int  // of the answer; 0 is a broken connection
	after  bool // the request is carried out anyway
	stop   bool // and then the process ends
}

var faults = []fault{
	{name: "409", writes: true, code: http.StatusConflict},
	{name: "429", code: http.StatusTooManyRequests},
	{name: "500", code: http.StatusInternalServerError},
	{name: "timeout", code: http.StatusGatewayTimeout},
	{name: "lost answer", writes: true, after: true},
	{name: "stop after write", writes: true, after: true, stop: true},
}

// Divergence is one request whose failure the module does not recover from.
type Divergence struct {
	// Nth is the request's position among all requests until the object was stable, counted from 1.
	// Call is the request, and Fault describes its failure.
	Nth   int    `json:"nth"`
	Call  string `json:"call"`
	Fault string `json:"fault"`
	// Why describes the end of the disturbed runs.
	Why string `json:"why"`
	// Diff lists the differences from the objects after undisturbed runs: "-" is missing, and "+"
	// is additional.
	Diff []string `json:"diff,omitempty"`
}

// ChaosReport is the result of Chaos.
type ChaosReport struct {
	// Skipped is the reason why the case does not suit Chaos. The other fields are then empty.
	Skipped string `json:"skipped,omitempty"`
	// Calls are the requests of the undisturbed runs. Tries is the number of times that the object
	// was reconciled until stable with one request disturbed.
	Calls []string `json:"calls"`
	Tries int      `json:"tries"`
	// Divergences is empty for a correct module.
	Divergences []Divergence `json:"divergences"`
}

// Chaos reconciles the object of a case until it is stable, run by run like the host. Then it
// repeats that for each request, with that request failing in each way. After any failure, the
// objects must be the same in the end. Times, and fields that the API server counts, are not
// compared.
func (s *Suite) Chaos(ctx context.Context, c *Case) (*ChaosReport, error) {
	report := &ChaosReport{}
	switch {
	case c.Object == nil:
		report.Skipped = "has no object to reconcile"
	case c.Error != nil:
		report.Skipped = "runs only error_policy"
	case len(c.Answers) > 0:
		report.Skipped = "has its own answers"
	}
	if report.Skipped != "" {
		return report, nil
	}
	b, err := s.open(ctx, c)
	if errors.Is(err, operation.ErrRefused) {
		report.Skipped = "settings refused"
		return report, nil
	}
	if err != nil {
		return nil, fmt.Errorf("case[%s]: %w", c.Name, err)
	}
	defer func() { b.close(ctx) }()
	return report, b.disturb(ctx, report)
}

// disturb fills the report.
func (b *bench) disturb(ctx context.Context, report *ChaosReport) error {
	calm, err := b.settle(ctx, 0, fault{})
	if err != nil {
		return fmt.Errorf("case[%s]: %w", b.c.Name, err)
	}
	report.Calls = calm.calls
	if calm.restless {
		report.Divergences = []Divergence{{Why: calm.why}}
		return nil
	}
	for i, call := range calm.calls {
		for _, d := range faults {
			if d.writes && !calm.writes[i] {
				continue
			}
			report.Tries++
			found, err := b.disturbed(ctx, i+1, d, calm)
			if err != nil {
				return fmt.Errorf("case[%s]: %s, %s: %w", b.c.Name, call, d.name, err)
			}
			if found != nil {
				found.Nth, found.Call, found.Fault = i+1, call, d.name
				report.Divergences = append(report.Divergences, *found)
			}
		}
	}
	return nil
}

// disturbed reconciles the object until stable with one request disturbed. It returns the
// difference at the end, or nil.
func (b *bench) disturbed(ctx context.Context, nth int, d fault, calm *settled) (*Divergence, error) {
	end, err := b.settle(ctx, nth, d)
	switch {
	case err != nil:
		return nil, err
	case end.restless:
		return &Divergence{Why: end.why}, nil
	case slices.Equal(calm.objects, end.objects):
		return nil, nil
	}
	diff := slices.DeleteFunc(lineDiff(calm.objects, end.objects), func(line string) bool { return line[0] == ' ' })
	return &Divergence{Why: end.why, Diff: diff}, nil
}

// settled describes how an object became stable.
type settled struct {
	calls   []string
	writes  []bool // whether each call writes
	objects []string
	why     string // of the last run
	// restless reports that the object did not become stable.
	restless bool
}

// settle runs the object like the host until it is stable. It disturbs the nth request; 0 disturbs
// none.
func (b *bench) settle(ctx context.Context, nth int, d fault) (*settled, error) {
	if err := b.reset(ctx); err != nil {
		return nil, err
	}
	r := &settled{}
	p := &pass{bench: b, settled: r, nth: nth, d: d}
	for range maxRuns {
		done, err := p.step(ctx)
		if err != nil {
			return r, err
		}
		if done {
			r.objects = normalObjects(b.w.server.Objects())
			return r, nil
		}
	}
	r.restless, r.why = true, fmt.Sprintf("not stable after %d runs; the last: %s", maxRuns, r.why)
	return r, nil
}

// pass is one series of runs until an object is stable.
type pass struct {
	*bench
	*settled

	d   fault
	nth int
	// calm is the number of consecutive runs that wrote nothing.
	calm int
	hit  bool // the disturbed request was in this run
	// interrupt ends the run, like the end of the process.
	interrupt context.CancelFunc
}

// step makes one run, and reports whether the object is stable.
func (p *pass) step(ctx context.Context) (done bool, err error) {
	running, interrupt := context.WithCancel(ctx)
	defer interrupt()
	p.interrupt, p.hit = interrupt, false
	p.w.intercept = p.request
	out, err := p.run(running)
	if err != nil {
		return false, err
	}
	changes := p.w.server.Changes()
	p.why = describe(&out, changes)
	if p.hit && p.d.stop {
		return false, p.restart(ctx)
	}
	if err := p.w.refresh(); err != nil {
		return false, err
	}
	triggered := slices.ContainsFunc(changes, func(c memapi.Change) bool { return p.w.sees(&c) })
	if p.calm++; len(changes) > 0 || p.hit {
		p.calm = 0
	}
	switch {
	case !out.Failed() && p.calm > 0, p.calm == calmRuns:
		return true, nil
	case triggered:
		return false, nil
	case out.Action.Requeue:
		p.w.now = p.w.now.Add(max(out.Action.After, time.Second))
		return false, nil
	}
	return true, nil // nothing would cause another run
}

// request counts a request, and disturbs the nth one.
func (p *pass) request(r *memapi.Request) memapi.Fault {
	p.calls, p.writes = append(p.calls, r.String()), append(p.writes, r.Writes())
	if len(p.calls) != p.nth {
		return memapi.Fault{}
	}
	p.hit = true
	fault := memapi.Fault{Err: errBroken, After: p.d.after}
	if p.d.code != 0 {
		fault.Err = refusal(r, p.d.code, "", "")
	}
	if p.d.stop {
		p.interrupt()
	}
	return fault
}

// restart models the end of the process and the start of a new one. The module and the client are
// new, and the cluster is unchanged.
func (p *pass) restart(ctx context.Context) error {
	p.close(ctx)
	if err := p.w.restart(); err != nil {
		return err
	}
	return p.load(ctx)
}

// sees reports whether a watch of the module shows a change.
func (w *world) sees(c *memapi.Change) bool {
	return slices.ContainsFunc(w.cache.watches, func(watch *watch) bool {
		return watch.resource().GroupResource() == c.Request.Kind.GroupVersion().WithResource(c.Request.Kind.Resource).GroupResource()
	})
}

// describe describes the end of a run.
func describe(out *applier.Outcome, changes []memapi.Change) string {
	e := expectation(out)
	var text strings.Builder
	text.WriteString(e.Action)
	if e.Error != nil {
		text.WriteString(", after the error: " + e.Error.Message)
	}
	for i := range changes {
		text.WriteString("; " + writeOf(&changes[i]).Write)
	}
	return text.String()
}
