// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// metricCases are about metric.
func metricCases() []Case {
	c := func(id, about string, want metric) Case {
		return Case{"metric." + id, 5, about, func(p *probe) error {
			s, err := p.step(do("metric", "kind", int(want.kind), "name", want.name, "value", want.value))
			if err := first(err, same("status", orZero(s["status"]), 0)); err != nil {
				return err
			}
			if got := p.rig.api.reported(); !slices.Equal(got, []metric{want}) {
				return fmt.Errorf("metric: got %v, want %v", got, want)
			}
			return nil
		}}
	}
	return []Case{
		c("counter", "a counter", metric{0, "greetings_total", 1}),
		c("gauge", "a gauge, with all bits of its value", metric{1, "temperature_celsius", -0.1e-300}),
		{
			"metric.refused", 5, "a metric that the host does not take",
			refuses(do("metric", "kind", 1, "name", strings.Repeat("n", 257), "value", 1.0), abi.StatusTooLarge),
		},
		{
			"metric.bad", 5, "a name that Prometheus does not have",
			refuses(do("metric", "kind", 1, "name", "größe", "value", 1.0), abi.StatusBadRequest),
		},
		{
			"metric.unsupported", 9, "a host that keeps no metrics",
			onHost(oldHost, refuses(do("metric", "kind", 0, "name", "n", "value", 1.0), abi.StatusUnsupported)),
		},
	}
}

// logCases are about the log.
func logCases() []Case {
	cases := []Case{
		{"log.attributes", 5, "attributes keep their types", func(p *probe) error {
			attrs := object{"int": int64(1) << 60, "float": 1.5, "bool": true, "nil": nil, "text": "größe", "list": list{1, "a"}, "map": object{"k": object{}}}
			return p.logs(0, "with attributes: 😀", attrs)
		}},
		{"log.long", 5, "a line of 6,000 bytes", func(p *probe) error { return p.logs(0, strings.Repeat("a long line ", 500), object{}) }},
		{"log.order", 5, "lines keep their order", func(p *probe) error {
			_, err := p.steps(do("log", "level", 0, "msg", "one"), do("log", "level", 4, "msg", "two"), do("log", "level", 0, "msg", "three"))
			var got []string
			for _, l := range p.rig.log.take() {
				got = append(got, l.msg)
			}
			return first(err, same("lines", strings.Join(got, " "), "one two three"))
		}},
		{"log_level.all", 5, "a host that logs everything", reports(do("levels"), "kept", list{-4, 0, 4, 8})},
		{"log_level.quiet", 5, "a host that logs warnings and errors", onHost(quietHost, reports(do("levels"), "kept", list{4, 8}))},
	}
	for _, level := range []int{-4, 0, 4, 8} {
		cases = append(cases, Case{fmt.Sprintf("log.%d", level), 5, fmt.Sprintf("a line of level %d", level), func(p *probe) error {
			return p.logs(level, "hello", object{"count": 1})
		}})
	}
	return cases
}

// factCases are about facts of the host and of the run.
func factCases() []Case {
	cases := []Case{
		{"clock.realtime", 1, "the host's time, to the millisecond", reports(do("now"), "ms", nowMS)},
		{"clock.monotonic", 1, "a clock that goes forward, with all of its bits", func(p *probe) error {
			s, err := p.step(do("mono"))
			ns, _ := s["ns"].(list)
			if err := counted(len(ns), 2, err); err != nil {
				return err
			}
			a, _ := ns[0].(int64)
			b, _ := ns[1].(int64)
			if a <= 1<<53 || b <= a || a%2 != 1 || b%2 != 1 {
				return fmt.Errorf("got %d and then %d: they are to rise, and to be odd numbers above 2^53", a, b)
			}
			return nil
		}},
		{"cancelled.no", 5, "0 as long as the host goes on", func(p *probe) error { return p.cancelled(false) }},
		{"cancelled.yes", 5, "1 once the host is stopping", onHost(stopHost, func(p *probe) error { return p.cancelled(true) })},
		{"budget.milliseconds", 5, "the time that is left", func(p *probe) error { return p.budget(0, 1, 30_000) }},
		{"budget.calls", 5, "the operations that are left", onHost(smallHost, func(p *probe) error {
			steps, err := p.steps(do("budget", "kind", 1), do("op", "op", "config_get", "request", object{"key": "a"}), do("budget", "kind", 1))
			return first(err, same("left", list{steps0(steps, 0)["left"], steps0(steps, 2)["left"]}, list{smallCalls, smallCalls - 1}))
		})},
		{"budget.fuel", 5, "the fuel that is left", onHost(smallHost, func(p *probe) error { return p.budget(2, 1, smallFuel) })},
		{"budget.unbounded", 5, "-1 without a limit", func(p *probe) error { return p.budget(2, -1, -1) }},
		{"budget.unknown", 5, "-1 for an unknown kind", func(p *probe) error { return p.budget(99, -1, -1) }},
		{"random.fresh", 1, "two draws are not the same", func(p *probe) error {
			steps, err := p.steps(do("random", "len", 32), do("random", "len", 32))
			a, b := fmt.Sprint(steps0(steps, 0)["hex"]), fmt.Sprint(steps0(steps, 1)["hex"])
			if err == nil && (len(a) != 64 || len(b) != 64 || a == b) {
				err = fmt.Errorf("got %s and %s", a, b)
			}
			return err
		}},
	}
	for _, n := range []int{0, 1, 32, 65536} {
		cases = append(cases, Case{fmt.Sprintf("random.%d", n), 1, fmt.Sprintf("%d random bytes", n), func(p *probe) error {
			s, err := p.step(do("random", "len", n))
			hex, _ := s["hex"].(string)
			return first(err, same("length in hexadecimal", len(hex), 2*n))
		}})
	}
	return cases
}

// steps0 returns the report of one step. It is empty if there is none.
func steps0(steps []object, i int) object {
	if i < len(steps) {
		return steps[i]
	}
	return nil
}

func (p *probe) logs(level int, msg string, attrs object) error {
	if _, err := p.step(do("log", "level", level, "msg", msg, "attrs", attrs)); err != nil {
		return err
	}
	lines := p.rig.log.take()
	if len(lines) != 1 {
		return fmt.Errorf("log: got %d lines, want 1", len(lines))
	}
	got := object{}
	for name := range attrs {
		if v, ok := lines[0].attrs[name]; ok {
			got[name] = v
		}
	}
	return first(same("level", int(lines[0].level), level), same("message", lines[0].msg, msg), same("attributes", got, attrs))
}

func (p *probe) cancelled(want bool) error {
	s, err := p.step(do("cancelled"))
	return first(err, same("cancelled", s["cancelled"] == true, want))
}

func (p *probe) budget(kind int, least, most int64) error {
	s, err := p.step(do("budget", "kind", kind))
	left, ok := s["left"].(int64)
	if err == nil && (!ok || left < least || left > most) {
		err = fmt.Errorf("left: got %s, want %d to %d", short(s["left"]), least, most)
	}
	return err
}
