// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// maxHop is the longest single sleep of Cron. After each, it checks the system clock, which may have been set, or have advanced while the
// machine was suspended.
const maxHop = time.Minute

// Cron requests all objects at low priority on a schedule.
type Cron struct {
	spec     string
	schedule cron.Schedule
	location *time.Location
}

// NewCron returns a Cron for a schedule: five fields (minute, hour, day of month, month, day of week) as in CronJob, or @hourly, @daily,
// @weekly, @monthly or @yearly. The fields are interpreted in the time zone; nil means UTC. A time that does not exist because of daylight
// saving time is skipped. A schedule that never matches, such as 30 February, is an error.
func NewCron(spec string, zone *time.Location) (Cron, error) {
	if zone == nil {
		zone = time.UTC
	}
	switch {
	case strings.HasPrefix(spec, "TZ="), strings.HasPrefix(spec, "CRON_TZ="):
		// The parser would accept a zone, and panics if nothing follows it.
		return Cron{}, fmt.Errorf("cron[%s]: the time zone is not part of the schedule: set it separately", spec)
	case strings.HasPrefix(spec, "@every"):
		return Cron{}, fmt.Errorf("cron[%s]: @every is a period, not a schedule: use a resync", spec)
	}
	schedule, err := cron.ParseStandard(spec)
	if err != nil {
		return Cron{}, fmt.Errorf("cron[%s]: %w", spec, err)
	}
	c := Cron{spec, schedule, zone}
	if c.next(time.Now()).IsZero() {
		return Cron{}, fmt.Errorf("cron[%s]: %w", spec, errNever)
	}
	return c, nil
}

var errNever = errors.New("the schedule never matches")

// next returns the first time of the schedule after now, or the zero time if there is none within five years.
func (c Cron) next(now time.Time) time.Time {
	// The schedule has no time zone of its own: it uses that of its argument.
	return c.schedule.Next(now.In(c.location))
}

// Run implements Source. Times that were missed, because the machine was suspended, are made up for by one trigger.
func (c Cron) Run(ctx context.Context, emit Emit) error {
	for {
		at := c.next(time.Now())
		if at.IsZero() {
			return fmt.Errorf("cron[%s]: %w", c.spec, errNever)
		}
		if !sleepUntil(ctx, at) {
			return nil
		}
		emit(ctx, resync)
	}
}

// sleepUntil waits for a time of the wall clock. It returns false if ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	at = at.Round(0) // compare the wall clock, not the monotonic one
	for {
		left := at.Sub(time.Now().Round(0))
		if left <= 0 {
			return true
		}
		if !sleep(ctx, min(left, maxHop)) {
			return false
		}
	}
}

// String implements Source.
func (c Cron) String() string { return "cron " + c.spec + " " + c.location.String() }
