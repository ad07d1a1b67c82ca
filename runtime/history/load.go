package history

import (
	"math"
	"time"
)

// LoadTime is the time over which a Load is averaged: what is that long ago
// counts 1/e.
const LoadTime = time.Minute

// Load is how busy an object, or a controller, has lately been, each second.
type Load struct {
	// Runs and Errors count runs a second, Busy is the share of time that runs took
	// (1 is one worker all the time), Fuel what guests used a second.
	Runs, Errors, Busy, Fuel float64
}

// meter adds runs up, the older the less.
type meter struct {
	at   time.Time
	load Load
}

// add counts a run that has ended now.
func (m *meter) add(now time.Time, r *Run) {
	m.fade(now)
	perSecond := 1 / LoadTime.Seconds()
	m.load.Runs += perSecond
	m.load.Busy += perSecond * r.Took.Seconds()
	m.load.Fuel += perSecond * float64(r.Fuel)
	if r.Failed {
		m.load.Errors += perSecond
	}
}

// read returns the load as it is now.
func (m *meter) read(now time.Time) Load {
	faded := *m
	faded.fade(now)
	return faded.load
}

func (m *meter) fade(now time.Time) {
	since := now.Sub(m.at)
	if m.at.IsZero() || since <= 0 {
		m.at = now
		return
	}
	part := float64(since) / float64(LoadTime)
	keep := 1 - part // near enough for what is so short
	if part > 1e-4 {
		keep = math.Exp(-part)
	}
	m.load = Load{m.load.Runs * keep, m.load.Errors * keep, m.load.Busy * keep, m.load.Fuel * keep}
	m.at = now
}
