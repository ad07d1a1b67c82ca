package host

import "github.com/wasmctl/wasmctl/abi"

// hideSecrets takes the values of Secrets out of what a result says to people.
// Declared objects go to the cluster and stay unchanged. Long texts are cut.
func (g *revision) hideSecrets(res *abi.Result) {
	g.cfg.hideError(res.Error)
	for i, key := range res.Unknown[:min(len(res.Unknown), maxUnknown)] {
		res.Unknown[i] = shorten(g.cfg.Secrets.Text(key), maxProblem)
	}
}

func (c *Config) hideError(e *abi.ResultError) {
	if e != nil {
		e.Message, e.Reason = shorten(c.Secrets.Text(e.Message), maxText), shorten(c.Secrets.Text(e.Reason), maxProblem)
	}
}
