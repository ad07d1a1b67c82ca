// SPDX-License-Identifier: Apache-2.0

package probation

import (
	"cmp"
	"errors"
	"time"
)

// Defaults of Config.
const (
	DefaultTime     = time.Minute
	DefaultErrors   = 0.10
	DefaultCrashes  = 0.02
	DefaultSlowdown = 3
	DefaultStall    = 10 * time.Second
)

// Config sets how long a module is on probation, and how much worse it may be than its
// predecessor. Zero fields have defaults.
type Config struct {
	// Time is how long a revision is on probation, from its first run. Runs that begin in
	// this time count, and the verdict waits for them. A standby runs nothing, so a module
	// cannot pass there.
	Time time.Duration
	// Errors and Crashes are the shares of runs, 0 to 1, that may fail in addition to those
	// that failed in the previous revision.
	Errors, Crashes float64
	// Slowdown is the factor by which the duration of nine of ten runs may grow.
	Slowdown float64
	// Stall is how long a run may take if no run of the previous revision took that long.
	Stall time.Duration
}

// Validate returns an error that names the first field with an invalid value.
func (c Config) Validate() error {
	switch {
	case c.Time < 0 || c.Stall < 0:
		return errors.New("probation: time and stall must not be negative")
	case c.Errors < 0 || c.Errors > 1 || c.Crashes < 0 || c.Crashes > 1:
		return errors.New("probation: errors and crashes must be shares of runs, 0 to 1")
	case c.Slowdown < 0 || c.Slowdown > 0 && c.Slowdown < 1:
		return errors.New("probation: slowdown must be at least 1")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Time = cmp.Or(c.Time, DefaultTime)
	c.Errors = cmp.Or(c.Errors, DefaultErrors)
	c.Crashes = cmp.Or(c.Crashes, DefaultCrashes)
	c.Slowdown = cmp.Or(c.Slowdown, DefaultSlowdown)
	c.Stall = cmp.Or(c.Stall, DefaultStall)
	return c
}
