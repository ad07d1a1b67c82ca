// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/internal/memapi"
)

// counter counts by name.
type counter struct {
	mu sync.Mutex
	n  map[string]int // guarded by mu
}

func (c *counter) next(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
	return c.n[name]
}

// phases are times in which all requests for a resource fail.
type phases struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu
	why   map[string]error
}

func (p *phases) begin(s *sim, r *rand.Rand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until, p.why = map[string]time.Time{}, map[string]error{}
	}
	kind := pick(r, widgets, configs, parts, zones)
	resource := kind.Resource
	p.why[resource] = refusal(r, &kind)
	p.until[resource] = time.Now().Add(upTo(r, 5*time.Minute))
	s.logf("requests about %s fail until %v: %v", resource, p.until[resource].Sub(s.begin), p.why[resource])
}

func (p *phases) of(resource string) (why error, failing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why[resource], time.Now().Before(p.until[resource])
}

var errRefused = errors.New("dial tcp 127.0.0.1:6443: connection refused")

// refusal draws the reason for which a request fails.
func refusal(r *rand.Rand, kind *memapi.Kind) error {
	code, resource := pick(r, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusInternalServerError, 503, http.StatusGone, 0), kind.GVR().GroupResource()
	switch code {
	case 0:
		return errRefused
	case http.StatusGone:
		return apierrors.NewResourceExpired("too old resource version")
	case http.StatusForbidden:
		return apierrors.NewForbidden(resource, "", errors.New("planned"))
	case http.StatusTooManyRequests:
		return apierrors.NewGenericServerResponse(code, "list", resource, "", "planned", r.IntN(4), true)
	}
	return apierrors.NewGenericServerResponse(code, "list", resource, "", "planned", 0, true)
}

// errNoStreams is the answer to a streamed list of an API server before 1.32.
var errNoStreams = apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)

// fault is what goes wrong with a request to the API server.
func (s *sim) fault(req *memapi.Request) memapi.Fault {
	if s.asked.Add(1) > maxRequests {
		s.tooMany("requests")
	}
	selector := req.Query.Get("labelSelector")
	r := s.rng("plan", req.Kind.Resource, req.Namespace, selector, s.counts.next(req.Kind.Resource+"/"+req.Namespace+"/"+selector))
	fault := s.drawFault(r, req)
	if fault.Err == nil && s.plot.noStreams && req.Query.Get("sendInitialEvents") == "true" {
		fault.Err = errNoStreams
	}
	return fault
}

func (s *sim) drawFault(r *rand.Rand, req *memapi.Request) memapi.Fault {
	if s.calm.Load() || s.plot.mood == 0 {
		return memapi.Fault{}
	}
	if why, failing := s.phases.of(req.Kind.Resource); failing {
		return memapi.Fault{Err: why}
	}
	bad := func(p float64) bool { return chance(r, p*s.plot.mood) }
	if bad(0.15) {
		why := refusal(r, &req.Kind)
		return memapi.Fault{Err: why, Delay: upTo(r, time.Second)}
	}
	p := memapi.Fault{PageSize: s.plot.pageSize}
	if bad(0.3) {
		p.Delay = upTo(r, pick(r, 10*time.Millisecond, time.Second, 20*time.Second))
	}
	if bad(0.4) {
		p.Latency = upTo(r, pick(r, 10*time.Millisecond, time.Second, 10*time.Second))
	}
	if bad(0.3) {
		p.Lag = r.Int64N(maxLag)
	}
	if bad(0.3) {
		p.Twice = 1 + r.IntN(3)
	}
	if bad(0.5) {
		p.End = memapi.End(r.IntN(int(memapi.Stalled) + 1))
		if chance(r, 0.5) {
			p.EndEvents = 1 + r.IntN(5)
		} else {
			p.EndAfter = 1 + upTo(r, pick(r, time.Second, time.Minute))
		}
	}
	return p
}
