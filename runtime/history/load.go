package history

import (
	"time"

	"github.com/wasmctl/wasmctl/internal/decay"
)

// LoadTime is the time over which a Load is averaged: what is that long ago
// counts 1/e.
const LoadTime = decay.Time

// Load is how busy an object, or a controller, has been in about the last minute:
// averages for each second.
type Load struct {
	// Runs and Errors count runs a second. Busy is the share of time that runs took:
	// 1 is one worker all the time. Fuel is in the unit of docs/metering.md.
	Runs   float64 `json:"runs"`
	Errors float64 `json:"errors"`
	Busy   float64 `json:"busy"`
	Fuel   float64 `json:"fuel"`
	// Guest and Host are the share of time in which guests computed, and in which
	// the host worked for them: 1 is one core all the time.
	Guest float64 `json:"guestCPU"`
	Host  float64 `json:"hostCPU"`
	// Requests counts requests to the API server, and Answers the bytes of their
	// answers.
	Requests float64 `json:"apiRequests"`
	Answers  float64 `json:"answerBytes"`
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
	left, l := decay.Left(since), &m.load
	*l = Load{
		l.Runs * left, l.Errors * left, l.Busy * left, l.Fuel * left, l.Guest * left, l.Host * left, l.Requests * left, l.Answers * left,
	}
	m.at = now
}

// Cost is what runs have cost.
type Cost struct {
	// Guest is how long the guest computed, Host how long the host worked for it.
	Guest, Host time.Duration
	// Requests counts those to the API server, Answers the bytes of their answers.
	Requests, Answers int64
}

func (c *Cost) add(other *Cost) {
	c.Guest += other.Guest
	c.Host += other.Host
	c.Requests += other.Requests
	c.Answers += other.Answers
}

// Cost returns what all runs until now have cost, and the guest outside of them.
func (r *Recorder) Cost() Cost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cost
}

// OutsideRuns counts time that the guest computed for no run.
func (r *Recorder) OutsideRuns(now time.Time, guest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cost.Guest += guest
	r.total.fade(now)
	r.total.load.Guest += guest.Seconds() / LoadTime.Seconds()
}
