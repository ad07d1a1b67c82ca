// SPDX-License-Identifier: Apache-2.0

package life

import (
	"slices"

	"github.com/wasmctl/wasmctl/internal/rollout/probation"
)

// Conditions of the table. Those about the change in progress are evaluated only in phases
// that have one.

func isOK(_ *Core, ev *Event) bool     { return ev.Outcome == OK }
func isNotOK(_ *Core, ev *Event) bool  { return ev.Outcome != OK }
func isBad(_ *Core, ev *Event) bool    { return ev.Outcome == Bad }
func isEnding(_ *Core, ev *Event) bool { return ev.Outcome == Ending }
func hasEnded(_ *Core, ev *Event) bool { return ev.Outcome == OK || ev.Outcome == Same }
func hasThen(c *Core, _ *Event) bool   { return c.then != nil }
func hasFirst(c *Core, _ *Event) bool  { return c.first != nil }
func hasChange(c *Core, _ *Event) bool { return len(c.changes) > 0 }
func hasCanary(c *Core, _ *Event) bool { return c.canary.Number != 0 }
func isShadow(c *Core, _ *Event) bool  { return c.top().Kind == Shadow }
func isTried(c *Core, _ *Event) bool   { return c.top().Canary != "" }
func isCanary(c *Core, ev *Event) bool {
	return c.canary.Digest == ev.Digest && c.on == ev.Canary && hasCanary(c, ev)
}
func isLive(c *Core, ev *Event) bool { return ev.Outcome == Same && c.top().Kind == Swap }
func isNotKept(c *Core, ev *Event) bool {
	return ev.Outcome == NotKept && c.top().Urgent() && c.top().To != 0
}

func isDifferent(_ *Core, ev *Event) bool { return ev.Differs != Nothing }
func hasOptions(_ *Core, ev *Event) bool  { return ev.Differs == Options }

func hasNoWayBack(c *Core, ev *Event) bool { return ev.Outcome != OK && c.top().Urgent() }
func isUnpromoted(c *Core, ev *Event) bool { return ev.Outcome != OK && c.top().Kind == Promote }

// isForbidden reports whether a module was rolled back, and is not forced.
func isForbidden(c *Core, ev *Event) bool { return c.bad[ev.Digest] != "" && !ev.Force }

// isPrepared reports whether a swap to the module is under way.
func isPrepared(c *Core, ev *Event) bool {
	return slices.ContainsFunc(c.changes, func(ch Change) bool { return ch.Kind == Swap && ch.Digest == ev.Digest })
}

// isKnown reports whether the same is wanted as before.
func isKnown(c *Core, ev *Event) bool {
	return ev.Differs == Nothing && ev.Digest == c.given && !ev.Force
}

// hasForbidden reports whether the module of an interrupted change must not be tried.
func hasForbidden(c *Core, _ *Event) bool {
	return len(c.changes) > 0 && c.top().Kind == Swap && !c.top().Force && c.bad[c.top().Digest] != ""
}

// isNew reports whether something else is wanted than before.
func isNew(c *Core, ev *Event) bool {
	return ev.Differs != Nothing || c.asked != "" && ev.Digest != c.asked
}

// isOther reports whether something else is wanted than what could not be loaded.
func isOther(c *Core, ev *Event) bool { return isNew(c, ev) || ev.Digest != c.given }

func canaryIs(v probation.Verdict) func(*Core, *Event) bool {
	return func(c *Core, ev *Event) bool { return hasCanary(c, ev) && ev.Canaries.Verdict == v }
}

func liveIs(v probation.Verdict) func(*Core, *Event) bool {
	return func(_ *Core, ev *Event) bool { return ev.Lives.Verdict == v }
}

func failedOnTrial(c *Core, ev *Event) bool {
	return c.onTrial() && ev.Lives.Verdict == probation.Failed
}

// isWorse reports whether a preparation must wait for a verdict.
func isWorse(_ *Core, ev *Event) bool {
	return ev.Canaries.Verdict == probation.Failed || ev.Lives.Verdict == probation.Failed
}
