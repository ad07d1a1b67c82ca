package flags

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl"
)

// defaultCanaryTime is for how long a canary must do no worse until it is
// promoted.
const defaultCanaryTime = 5 * time.Minute

// Canary has the flags of a canary.
type Canary struct {
	Share      string
	Namespaces []string
	Selector   string
	Time       time.Duration
}

// Bind adds the flags.
func (o *Canary) Bind(f *pflag.FlagSet) {
	f.StringVar(&o.Share, "canary", "", "Run a new module as a canary on this `percentage` of the objects first, for example 10% (default: no canary)")
	f.StringSliceVar(&o.Namespaces, "canary-namespace", nil, "Run the canary on objects in these `namespaces`; repeatable")
	f.StringVar(&o.Selector, "canary-selector", "", "Run the canary on objects that match this label `selector`")
	f.DurationVar(&o.Time, "canary-time", defaultCanaryTime, "Promote the canary after this long unless it does worse; 0 waits for wasmctl promote")
}

// Given reports whether any of the flags was.
func (o *Canary) Given(f *pflag.FlagSet) bool {
	return o.Share != "" || len(o.Namespaces) > 0 || o.Selector != "" || f.Changed("canary-time")
}

// Parse returns what the flags mean.
func (o *Canary) Parse() (wasmctl.Canary, error) {
	return wasmctl.ParseCanary(o.Share, o.Namespaces, o.Selector, o.Time)
}
