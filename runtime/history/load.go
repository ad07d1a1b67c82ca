// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	"github.com/wasmctl/wasmctl/internal/decay"
)

// LoadTime is the time constant of a Load: a run that long ago counts 1/e.
const LoadTime = decay.Time

// Load is the load that an object, or a controller, has caused in about the last minute, in
// averages per second.
type Load struct {
	// Runs and Errors count runs per second. Busy is the share of time that runs took: 1 is
	// one worker all the time. Fuel is in the unit of docs/metering.md.
	Runs   float64 `json:"runs"`
	Errors float64 `json:"errors"`
	Busy   float64 `json:"busy"`
	Fuel   float64 `json:"fuel"`
	// Guest and Host are the shares of time in which guests and the host computed: 1 is one
	// core all the time.
	Guest float64 `json:"guestCPU"`
	Host  float64 `json:"hostCPU"`
	// Requests counts requests to the API server, and Answers the bytes of their answers.
	Requests float64 `json:"apiRequests"`
	Answers  float64 `json:"answerBytes"`
}

// meter sums runs up with an exponential decay.
type meter struct {
	at   time.Time
	load Load
}

// add counts a run that ended at now.
func (m *meter) add(now time.Time, r *Run) {
	m.fade(now)
	perSecond := 1 / LoadTime.Seconds()
	m.load.Runs += perSecond
	m.load.Busy += perSecond * time.Duration(r.Took).Seconds()
	m.load.Fuel += perSecond * float64(r.Fuel)
	m.load.Guest += perSecond * r.Cost.Guest.Seconds()
	m.load.Host += perSecond * r.Cost.Host.Seconds()
	m.load.Requests += perSecond * float64(r.Cost.Requests)
	m.load.Answers += perSecond * float64(r.Cost.Answers)
	if r.Result == ResultFailed {
		m.load.Errors += perSecond
	}
}

// read returns the load at now.
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
	left, l := decay.Left(since), &m.load
	*l = Load{
		l.Runs * left, l.Errors * left, l.Busy * left, l.Fuel * left, l.Guest * left, l.Host * left, l.Requests * left, l.Answers * left,
	}
	m.at = now
}

// Cost is the cost of runs.
type Cost struct {
	// Guest is the computing time of the guest, and Host that of the host for it.
	Guest, Host time.Duration
	// Requests counts requests to the API server, and Answers the bytes of their answers.
	Requests, Answers int64
}

func (c *Cost) add(other *Cost) {
	c.Guest += other.Guest
	c.Host += other.Host
	c.Requests += other.Requests
	c.Answers += other.Answers
}

// Cost returns the cost of all runs so far, and of the guest outside of runs.
func (r *Recorder) Cost() Cost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cost
}

// OutsideRuns counts computing time of the guest outside of runs.
func (r *Recorder) OutsideRuns(now time.Time, guest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cost.Guest += guest
	r.total.fade(now)
	r.total.load.Guest += guest.Seconds() / LoadTime.Seconds()
}
