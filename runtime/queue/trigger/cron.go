package trigger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// maxHop is how long Cron sleeps at a time. Between hops it checks the system
// clock, which may have been set, or have gone on while the machine slept.
const maxHop = time.Minute

// Cron asks for all objects at low priority by a schedule.
type Cron struct {
	spec     string
	schedule cron.Schedule
	location *time.Location
}

// NewCron returns a Cron of a schedule: five fields (minute, hour, day of month,
// month, day of week) as in CronJob, or @hourly, @daily, @weekly, @monthly or
// @yearly. The fields are read in the time zone; nil is UTC. A time that the
// change to summer time leaves out is left out. The error says what is wrong
// with the schedule, also one that never comes, like 30 February.
func NewCron(spec string, zone *time.Location) (Cron, error) {
	if zone == nil {
		zone = time.UTC
	}
	switch {
	case strings.HasPrefix(spec, "TZ="), strings.HasPrefix(spec, "CRON_TZ="):
		// The parser would read a zone of its own, and panics where nothing follows it.
		return Cron{}, fmt.Errorf("cron[%s]: the time zone is not part of the schedule: set it separately", spec)
	case strings.HasPrefix(spec, "@every"):
		return Cron{}, fmt.Errorf("cron[%s]: is a period, not a schedule: use a resync", spec)
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

// next returns the first time of the schedule after now, or the zero time where
// none is within five years.
func (c Cron) next(now time.Time) time.Time {
	// The schedule has no zone of its own: it reads the fields in that of now.
	return c.schedule.Next(now.In(c.location))
}

// Run implements Source. A time that passed unseen, because the machine slept,
// is made up for at once; several of them are one.
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

// sleepUntil waits for a time of the wall clock; false says that ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	at = at.Round(0) // compare by the wall clock, not by the monotonic one
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
