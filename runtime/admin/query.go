package admin

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Keys of the query of a swap.
const (
	queryForce     = "force"
	queryCanary    = "canary"
	queryNamespace = "canaryNamespace"
	querySelector  = "canarySelector"
	queryTime      = "canaryTime"
)

// query is how it is sent: the body has the module. A canary has its time at
// least.
func (h *SwapOptions) query() url.Values {
	q := url.Values{}
	if h.Force {
		q.Set(queryForce, strconv.FormatBool(true))
	}
	if c := h.Canary; c != nil {
		q.Set(queryTime, c.Time.String())
		q[queryNamespace] = c.Namespaces
		for key, value := range map[string]string{queryCanary: c.Share, querySelector: c.Selector} {
			if value != "" {
				q.Set(key, value)
			}
		}
	}
	return q
}

// swapOptions reads what query has written, and what a user writes by hand.
func swapOptions(q url.Values) (SwapOptions, error) {
	h := SwapOptions{Force: q.Get(queryForce) == "true"}
	for _, key := range []string{queryCanary, queryNamespace, querySelector, queryTime} {
		if q.Has(key) {
			h.Canary = &Canary{Share: q.Get(queryCanary), Namespaces: q[queryNamespace], Selector: q.Get(querySelector)}
		}
	}
	if text := q.Get(queryTime); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return h, fmt.Errorf("%s: %w", queryTime, err)
		}
		h.Canary.Time = d
	}
	return h, nil
}
