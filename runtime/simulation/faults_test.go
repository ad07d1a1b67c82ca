package simulation

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/runtime/simulation/apisim"
)

// phases are times in which all requests about a resource fail.
type phases struct {
	mu    sync.Mutex
	until map[string]time.Time // guarded by mu
	plan  map[string]apisim.Plan
}

func (p *phases) begin(s *sim, r *rand.Rand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until, p.plan = map[string]time.Time{}, map[string]apisim.Plan{}
	}
	resource := pick(r, widgets, configs, parts, zones).Resource
	p.plan[resource] = refusal(r)
	p.until[resource] = time.Now().Add(upTo(r, 5*time.Minute))
	s.logf("requests about %s fail with %d until %v", resource, p.plan[resource].Code, p.until[resource].Sub(s.begin))
}

func (p *phases) of(resource string) (apisim.Plan, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan[resource], time.Now().Before(p.until[resource])
}

var errRefused = errors.New("dial tcp 127.0.0.1:6443: connection refused")

// refusal draws why a request gets no answer.
func refusal(r *rand.Rand) apisim.Plan {
	p := apisim.Plan{Code: pick(r, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusInternalServerError, 503, http.StatusGone, 0)}
	switch p.Code {
	case http.StatusTooManyRequests:
		p.RetryAfter = r.IntN(4)
	case 0:
		p.Err = errRefused
	}
	return p
}

// plan is what goes wrong with a request to the API server.
func (s *sim) plan(req *apisim.Request) apisim.Plan {
	if s.asked.Add(1) > maxRequests {
		s.tooMany("requests")
	}
	if s.calm.Load() || s.plot.mood == 0 {
		return apisim.Plan{}
	}
	if plan, failing := s.phases.of(req.Resource); failing {
		return plan
	}
	r := s.rng("plan", req.Resource, req.Namespace, req.Selector, req.Number)
	bad := func(p float64) bool { return chance(r, p*s.plot.mood) }
	if bad(0.15) {
		p := refusal(r)
		p.Delay = upTo(r, time.Second)
		return p
	}
	p := apisim.Plan{PageSize: s.plot.pageSize}
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
		p.End = apisim.End(r.IntN(int(apisim.Stalled) + 1))
		if chance(r, 0.5) {
			p.EndEvents = 1 + r.IntN(5)
		} else {
			p.EndAfter = 1 + upTo(r, pick(r, time.Second, time.Minute))
		}
	}
	return p
}
