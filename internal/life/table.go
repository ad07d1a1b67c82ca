// SPDX-License-Identifier: Apache-2.0

package life

import (
	"slices"

	"github.com/wasmctl/wasmctl/internal/rollout/probation"
)

// transition is a row of the table.
type transition struct {
	from []Phase
	on   Kind
	when string // the condition, for the diagram; empty means always
	is   func(*Core, *Event) bool
	to   Phase
	do   func(*Core, *Event)
}

func (t *transition) fits(c *Core, ev *Event) bool {
	return t.on == ev.Kind && slices.Contains(t.from, c.Phase) && (t.is == nil || t.is(c, ev))
}

// emits returns an action that emits effects.
func emits(kinds ...EffectKind) func(*Core, *Event) {
	return func(c *Core, ev *Event) {
		for _, k := range kinds {
			c.emit(Effect{Kind: k, ID: ev.ID})
		}
	}
}

var (
	idle      = []Phase{Idle}
	loaded    = []Phase{Loaded}
	loading   = []Phase{Loading, Waiting}
	waiting   = []Phase{Waiting}
	running   = []Phase{Running}
	preparing = []Phase{Preparing}
	cutting   = []Phase{Cutting}
	promoting = []Phase{Promoting}
	active    = []Phase{Running, Preparing, Cutting}
	failed    = []Phase{Failed}
	stopping  = []Phase{Stopping}
	restart   = []Phase{Restarting}
	leaving   = []Phase{Stopping, Restarting}
)

// table has all transitions. The first row that matches applies. It is built by init
// because an action may take another event.
var table []transition

func init() {
	table = append(table, starts...)
	table = append(table, changes...)
	table = append(table, preparations...)
	table = append(table, ends...)
}

// starts lead to a controller that runs.
var starts = []transition{
	{idle, Begin, "", nil, Loading, (*Core).load},
	{idle, Tried, "", nil, Loaded, (*Core).tried},
	{idle, Stop, "", nil, Stopped, nil},
	{loaded, Begin, "", nil, Running, emits(Run)},
	{loaded, Stop, "", nil, Stopping, emits(Close)},
	{loading, Waits, "another module is to follow", hasThen, Restarting, (*Core).cutToLoadNext},
	{loading, Waits, "", nil, Waiting, (*Core).explain},
	{loading, Tried, "it is loaded", isOK, Running, (*Core).run},
	{loading, Tried, "it was rolled back before, and the previous module is kept", isBad, Loading, (*Core).loadPrevious},
	{loading, Tried, "it failed, and another module is to follow", hasThen, Loading, (*Core).loadNext},
	{loading, Tried, "it failed", nil, Failed, (*Core).fail},
	{loading, Restart, "", nil, Restarting, emits(Cut)},
	{loading, Want, "other options", isDifferent, Restarting, (*Core).wantAnew},
	{waiting, Want, "another module", isNew, Restarting, (*Core).wantAnew},
	{loading, Stop, "", nil, Stopping, emits(Cut)},
	{failed, Retry, "", nil, Loading, (*Core).load},
	{failed, Restart, "", nil, Loading, (*Core).load},
	{failed, Want, "something else", isOther, Loading, (*Core).wantLoaded},
	{failed, Stop, "", nil, Stopped, nil},
}

// changes are the transitions of a running controller.
var changes = []transition{
	{running, Resume, "a request waits", hasFirst, Running, (*Core).takeFirst},
	{running, Resume, "what was prepared has failed meanwhile", hasForbidden, Running, (*Core).dismiss},
	{running, Resume, "a preparation was interrupted", hasChange, Preparing, (*Core).prepare},
	{running, Want, "other options", hasOptions, Restarting, (*Core).wantAnew},
	{running, Want, "other settings", isDifferent, Running, emits(Configure)},
	{running, Want, "another module", nil, Running, (*Core).wantModule},
	{running, Configured, "", nil, Running, (*Core).configured},
	{running, Swap, "it is the canary", isCanary, Running, (*Core).sameCanary},
	{running, Swap, "it was rolled back before", isForbidden, Running, (*Core).forbidden},
	{running, Swap, "", nil, Preparing, (*Core).begin},
	{running, Rollback, "", nil, Preparing, (*Core).begin},
	{running, Shadow, "", nil, Preparing, (*Core).begin},
	{running, Promote, "there is a canary", hasCanary, Promoting, (*Core).promoteCanary},
	{running, Promote, "there is none", nil, Running, (*Core).noCanary},
	{running, Abort, "there is a canary", hasCanary, Running, (*Core).abort},
	{running, Abort, "there is none", nil, Running, (*Core).noCanary},
	{running, Misfit, "", hasCanary, Running, (*Core).misfit},
	{running, Task, "", nil, Running, emits(Do)},
	{[]Phase{Running, Preparing}, Tick, "", nil, "", emits(Judge)},
	{running, Judged, "the canary does worse", canaryIs(probation.Failed), Running, (*Core).canaryFailed},
	{running, Judged, "the canary did no worse", canaryIs(probation.Passed), Promoting, (*Core).promoteCanary},
	{running, Judged, "the live revision does worse", liveIs(probation.Failed), Preparing, (*Core).rollBack},
	{running, Judged, "the live revision did no worse", liveIs(probation.Passed), Running, (*Core).prove},
	{running, Follow, "", nil, Running, (*Core).recall},
	{running, Lead, "", nil, Running, (*Core).recall},
	{running, Recalled, "the canary failed elsewhere", canaryIs(probation.Failed), Running, (*Core).canaryFailed},
	{running, Recalled, "the live revision failed elsewhere, and is on probation", failedOnTrial, Preparing, (*Core).rollBack},
	{running, Recalled, "the live revision failed elsewhere", liveIs(probation.Failed), Preparing, (*Core).followBack},
	{running, Recalled, "", nil, Running, (*Core).answer},
	{running, Led, "the live revision failed elsewhere, and is on probation", failedOnTrial, Preparing, (*Core).rollBack},
	{running, Led, "the live revision failed elsewhere", liveIs(probation.Failed), Running, (*Core).forbidden},
	{running, Led, "", nil, Running, (*Core).led},
}

// preparations are the transitions while another revision is prepared.
var preparations = []transition{
	{preparing, Swap, "it is this module", isPrepared, Preparing, (*Core).busy},
	{preparing, Want, "it is this module", isPrepared, Preparing, (*Core).busy},
	{preparing, Want, "nothing new", isKnown, Preparing, (*Core).answer},
	{preparing, Judged, "a revision does worse", isWorse, Cutting, (*Core).cutToJudge},
	{preparing, Want, "", nil, Cutting, (*Core).cut},
	{preparing, Swap, "", nil, Cutting, (*Core).cut},
	{preparing, Rollback, "", nil, Cutting, (*Core).cut},
	{preparing, Shadow, "", nil, Cutting, (*Core).cut},
	{preparing, Promote, "", nil, Cutting, (*Core).cut},
	{preparing, Abort, "", nil, Cutting, (*Core).cut},
	{preparing, Follow, "", nil, Cutting, (*Core).cut},
	{preparing, Lead, "", nil, Cutting, (*Core).cut},
	{preparing, Task, "", nil, Cutting, (*Core).cut},
	{cutting, Prepared, "it had ended", hasEnded, Preparing, (*Core).take},
	{cutting, Prepared, "", nil, Running, (*Core).supersede},
	{preparing, Prepared, "the controller ends", isEnding, Running, (*Core).abandon},
	{preparing, Prepared, "the revision to go back to is not kept", isNotKept, Preparing, (*Core).prepareOlder},
	{preparing, Prepared, "there is none to go back to", hasNoWayBack, Running, (*Core).stuck},
	{preparing, Prepared, "it is live already", isLive, Running, (*Core).same},
	{preparing, Prepared, "it cannot be used", isNotOK, Running, (*Core).refuse},
	{preparing, Prepared, "it is a shadow", isShadow, Running, (*Core).shadow},
	{preparing, Prepared, "it is tried on some objects", isTried, Running, (*Core).startCanary},
	{preparing, Prepared, "", nil, Promoting, (*Core).activate},
	{promoting, Promoted, "the controller ends", isEnding, Running, (*Core).abandon},
	{promoting, Promoted, "the canary cannot be promoted", isUnpromoted, Running, (*Core).unpromoted},
	{promoting, Promoted, "there is none to go back to", hasNoWayBack, Running, (*Core).stuck},
	{promoting, Promoted, "it cannot be used", isNotOK, Running, (*Core).refuse},
	{promoting, Promoted, "", nil, Running, (*Core).promoted},
}

// ends lead to the end, or to another start.
var ends = []transition{
	{active, Restart, "", nil, Restarting, (*Core).drain},
	{active, Stop, "", nil, Stopping, (*Core).drain},
	{active, Ended, "", nil, Stopping, (*Core).ended},
	{restart, Stop, "", nil, Stopping, nil},
	{leaving, Prepared, "", isOK, "", emits(Discard)},
	{leaving, Tried, "", isOK, "", emits(Close)},
	{leaving, Ended, "", nil, "", (*Core).ended},
	{stopping, Tried, "", nil, Stopped, nil},
	{stopping, Closed, "", nil, Stopped, nil},
	{restart, Tried, "", nil, Loading, (*Core).load},
	{restart, Closed, "", nil, Loading, (*Core).load},
}
