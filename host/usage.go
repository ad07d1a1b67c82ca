package host

import "time"

// Memory returns the linear memory of all instances of the module, idle ones
// included, in bytes. It takes no lock.
func (m *Module) Memory() int64 { return m.shared.memory.Load() }

// ended tells Config.OnCall of a call into a guest.
func (g *revision) ended(export string, startedAt time.Time, err error) {
	if g.cfg.OnCall != nil {
		g.cfg.OnCall(export, time.Since(startedAt), err)
	}
}
