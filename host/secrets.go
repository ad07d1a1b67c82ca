package host

import "github.com/wasmctl/wasmctl/abi"

// hideSecrets takes the values of Secrets out of what a result says to people.
// What it declares is for the cluster and stays.
func (g *generation) hideSecrets(res *abi.Result) {
	g.cfg.hideError(res.Error)
	for i, key := range res.Unknown {
		res.Unknown[i] = g.cfg.Secrets.Text(key)
	}
}

func (c *Config) hideError(e *abi.ResultError) {
	if e != nil {
		e.Message, e.Reason = c.Secrets.Text(e.Message), c.Secrets.Text(e.Reason)
	}
}
