// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// entryCases are about calls of buffer, reconcile and finalize.
func entryCases() []Case {
	cases := []Case{
		{"entry.reconcile", 1, "reconcile is called and its steps are reported", reports(do("echo", "value", "hello"), "value", "hello")},
		{"entry.finalize", 1, "finalize is called in the place of reconcile", func(p *probe) error {
			r, err := p.run(abi.ExportFinalize, ask(caseObject(object{"steps": list{do("echo", "value", 1)}})))
			if err != nil {
				return err
			}
			return first(same("steps", len(r.steps), 1), same("action", r.result.Action.Requeue, false))
		}},
		{"entry.empty-steps", 2, "a run that does nothing reports no steps", func(p *probe) error {
			_, err := p.steps()
			return err
		}},
		{"entry.again", 2, "calls after each other do not see each other", func(p *probe) error {
			for i := range 5 {
				text := strings.Repeat("x", i*1000)
				if err := reports(do("echo", "value", text), "value", text)(p); err != nil {
					return err
				}
			}
			return nil
		}},
	}
	for _, size := range []int{4096, 8191, 8192, 8193, 65535, 65536, 65537, 1 << 20, 1<<20 + 1, abi.MaxBytes} {
		cases = append(cases, Case{
			fmt.Sprintf("buffer.%d", size), 2, fmt.Sprintf("a request of %d bytes is taken", size),
			func(p *probe) error { return p.padded(size) },
		})
	}
	return append(cases, Case{"buffer.shrink", 2, "small requests are taken after a large one", func(p *probe) error {
		return first(p.padded(3<<20), p.padded(4096), p.padded(2<<20))
	}})
}

// padded makes a run with a request of exactly size bytes.
func (p *probe) padded(size int) error {
	spec := object{"steps": list{do("read", "path", list{"spec", "pad"}, "as", "type")}, "pad": ""}
	message := func(pad int) []byte {
		spec["pad"] = raw(append([]byte{0xdb, byte(pad >> 24), byte(pad >> 16), byte(pad >> 8), byte(pad)}, strings.Repeat("p", pad)...))
		return abi.AppendRequest(nil, ask(caseObject(spec)))
	}
	msg := message(size - len(message(0)))
	if len(msg) != size {
		return fmt.Errorf("BUG: case: %d bytes instead of %d", len(msg), size)
	}
	return p.exchanged(abi.ExportReconcile, msg, "value", "string")
}

// requestCases are about the guest's view of a request.
func requestCases() []Case {
	minimal := object{
		"id": "run-1", "controller": "conformance", "reason": object{"type": "Listed"}, "reasons": list{object{"type": "Listed"}},
		"attempt": 1, "key": object{"namespace": "default", "name": "case"}, "config_gen": 1, "object": true,
	}
	c := func(id, about string, change func(r *abi.Request), other object) Case {
		return Case{"request." + id, 4, about, func(p *probe) error {
			req := ask(caseObject(object{"steps": list{do("request")}}))
			change(req)
			want := maps.Clone(minimal)
			maps.Copy(want, other)
			return p.request(abi.ExportReconcile, req, want)
		}}
	}
	related := abi.Reason{Type: abi.ReasonRelated, Resource: "deployments.apps", Ref: abi.Key{Namespace: "default", Name: "web"}}
	relatedMap := object{"type": "Related", "resource": "deployments.apps", "ref": object{"namespace": "default", "name": "web"}}
	return []Case{
		c("minimal", "id, controller, reason, attempt, key and config_gen are read", func(*abi.Request) {}, nil),
		c("absent-object", "a request without an object is one of an object that is gone", func(r *abi.Request) { r.Object = nil }, object{"object": false}),
		c("cluster-scoped", "a key without a namespace", func(r *abi.Request) { r.Key = abi.Key{Name: "node"} }, object{"key": object{"name": "node"}}),
		c("unicode", "names that are not ASCII", func(r *abi.Request) { r.Key.Name, r.ID = "größe-😀", "läuft" },
			object{"key": object{"namespace": "default", "name": "größe-😀"}, "id": "läuft"}),
		c("stale", "stale is read", func(r *abi.Request) { r.Stale = true }, object{"stale": true}),
		c("attempt", "attempt is the largest number", func(r *abi.Request) { r.Attempt = math.MaxInt32 }, object{"attempt": math.MaxInt32}),
		c("related", "a reason has a resource and a ref", func(r *abi.Request) { r.Reason = related }, object{"reason": relatedMap, "reasons": list{relatedMap}}),
		c("merged", "the merged reasons, and how many had no room", func(r *abi.Request) {
			r.More, r.Dropped = []abi.Reason{related, {Type: abi.ReasonConfigChanged}}, 7
		}, object{"reasons": list{object{"type": "Listed"}, relatedMap, object{"type": "ConfigChanged"}}, "dropped": 7}),
		{"request.finalize", 4, "finalize is given a request as reconcile is", func(p *probe) error {
			return p.request(abi.ExportFinalize, ask(caseObject(object{"steps": list{do("request")}})), minimal)
		}},
		{"request.deadline", 4, "deadline_ms is on the real-time clock", func(p *probe) error {
			s, err := p.step(do("request"))
			if err != nil {
				return err
			}
			ms, _ := s["deadline_ms"].(int64)
			if limit := nowMS + (30 * time.Second).Milliseconds(); ms <= nowMS || ms > limit {
				return fmt.Errorf("deadline_ms: got %s, want more than %d and at most %d", short(s["deadline_ms"]), nowMS, limit)
			}
			return nil
		}},
		{"request.dry-run", 4, "dry_run is read", func(p *probe) error {
			req := abi.AppendRequest(nil, &abi.Request{ID: "r", DryRun: true, Key: key, Object: encode(caseObject(object{"steps": list{do("request")}}))})
			return p.exchanged(abi.ExportReconcile, req, "dry_run", true)
		}},
		{"request.caps", 9, "caps are read: those that this host has, and those that it lacks", func(p *probe) error {
			s, err := p.step(do("request", "caps", list{"api_get", "declare", "configure", "teleport", ""}))
			return first(err, alike("caps", s["caps"], object{"api_get": true, "declare": true, "configure": true}))
		}},
	}
}

// request compares the report of the step request. The deadline has a case of its own.
func (p *probe) request(entry string, req *abi.Request, want object) error {
	r, err := p.run(entry, req)
	if err := counted(len(r.steps), 1, err); err != nil {
		return err
	}
	delete(r.steps[0], "deadline_ms")
	return alike("request", r.steps[0], want)
}

// exchange passes a message unchanged, and reads the report of its one step.
func (p *probe) exchange(entry string, msg []byte) (object, error) {
	_, out, err := p.rig.module.Exchange(p.ctx, entry, msg)
	if err != nil {
		return nil, err
	}
	res, err := abi.DecodeResult(out)
	if err != nil {
		return nil, err
	}
	if res.Declared == nil {
		return nil, fmt.Errorf("the result has no report, and error %s", errorText(res.Error))
	}
	r, err := p.readReport(entry, res)
	if err = counted(len(r.steps), 1, err); err != nil {
		return nil, err
	}
	return r.steps[0], nil
}

// exchanged passes a message unchanged, and compares one key of the report.
func (p *probe) exchanged(entry string, msg []byte, name string, want any) error {
	s, err := p.exchange(entry, msg)
	return first(err, same(name, s[name], want))
}
