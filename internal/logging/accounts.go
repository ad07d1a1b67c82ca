// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/host/share"
)

// Bounds of the lines that a process writes about one tenant that is a namespace. The tenants that are
// controllers are the operator's. The lines of modules have bounds of their own.
const (
	tenantBurst = 512 << 10 // bytes
	tenantRate  = 32 << 10  // bytes a second
	// rareBurst and rareRate are the lines of each message, and lines a second, that are written even beyond
	// these bounds, so that a flood of one message does not hide another one.
	rareBurst = 20
	rareRate  = 0.1

	lineOverhead = 100 // the time, the level, and the attributes of the logger, in bytes
	forgetTenant = time.Hour
)

// accounts count the log lines of each tenant, and bound them. They are safe for concurrent use.
type accounts struct {
	mu  sync.Mutex
	all map[string]*account // by tenant; guarded by mu
}

// account is the account of one tenant. The mutex of accounts guards it.
type account struct {
	LogUsage

	rare   limiter
	tokens float64 // bytes
	at     time.Time
}

// LogUsage is what a tenant has written to the log of a process.
type LogUsage struct {
	Bytes   int64  // of lines, also of modules
	Dropped uint64 // lines
}

// take charges a line of n bytes to a tenant, and reports whether it may be written and, if so, how many lines
// of its message were dropped before it. A line of a module is never dropped here.
func (s *accounts) take(now time.Time, tenant string, r *slog.Record, n int, guest bool) (pass bool, dropped uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.of(now, tenant)
	if !guest && !share.IsOwnTenant(tenant) {
		if pass, dropped = a.allow(now, r.Level, r.Message, float64(n)); !pass {
			a.Dropped++
			return false, 0
		}
	}
	a.Bytes += int64(n)
	return true, dropped
}

// of returns the account of a tenant. The caller must hold mu.
func (s *accounts) of(now time.Time, tenant string) *account {
	a := s.all[tenant]
	if a == nil {
		maps.DeleteFunc(s.all, func(_ string, a *account) bool { return now.Sub(a.at) > forgetTenant })
		a = &account{rare: limiter{burst: rareBurst, rate: rareRate}, tokens: tenantBurst}
		s.all[tenant] = a
	}
	a.tokens = min(tenantBurst, a.tokens+max(0, now.Sub(a.at).Seconds())*tenantRate)
	a.at = now
	return a
}

// allow takes the bytes of a line or, if there are none, a line of its message.
func (a *account) allow(now time.Time, level slog.Level, text string, n float64) (pass bool, dropped uint64) {
	if a.tokens <= 0 {
		return a.rare.allow(now, level, text)
	}
	a.tokens -= n
	return true, a.rare.reported(level, text)
}

// usage returns what a tenant has written.
func (s *accounts) usage(tenant string) LogUsage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.all[tenant]; a != nil {
		return a.LogUsage
	}
	return LogUsage{}
}

// write writes a record to a handler if the account of a tenant allows it.
func (s *accounts) write(ctx context.Context, out slog.Handler, tenant string, r slog.Record) error {
	if s == nil || tenant == "" {
		return out.Handle(ctx, r)
	}
	n := lineOverhead + len(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		n += len(a.Key) + len(a.Value.String())
		return true
	})
	pass, dropped := s.take(r.Time, tenant, &r, n, fromGuest(&r))
	if !pass {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64("tenant_dropped", dropped))
	}
	return out.Handle(ctx, r)
}

// fromGuest reports whether a module has written a line.
func fromGuest(r *slog.Record) (guest bool) {
	r.Attrs(func(a slog.Attr) bool {
		guest = guest || a.Key == "from" && a.Value.String() == "guest"
		return !guest
	})
	return guest
}

// charged is a handler whose lines are charged to a tenant.
type charged struct {
	slog.Handler

	accounts *accounts
	tenant   string
}

// Handle implements slog.Handler.
func (h charged) Handle(ctx context.Context, r slog.Record) error {
	return h.accounts.write(ctx, h.Handler, h.tenant, r)
}

// WithAttrs implements slog.Handler.
func (h charged) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h charged) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// ForTenant returns a logger of the process for lines that are charged to a tenant. A logger that New did
// not make has no accounts, and is returned unchanged.
func ForTenant(process *slog.Logger, tenant string) *slog.Logger {
	if h, ok := process.Handler().(leveled); ok {
		return slog.New(charged{h, h.accounts, tenant})
	}
	return process
}

// UsageOf returns what a tenant has written to the log of a process.
func UsageOf(process *slog.Logger, tenant string) LogUsage {
	if h, ok := process.Handler().(leveled); ok {
		return h.accounts.usage(tenant)
	}
	return LogUsage{}
}
