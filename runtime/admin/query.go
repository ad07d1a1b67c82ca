// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/base64"
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
	queryProof     = "proof" // also of a shadow
	queryFrom      = "from"
)

func setProof(q url.Values, proof []byte) {
	if proof != nil {
		q.Set(queryProof, base64.RawURLEncoding.EncodeToString(proof))
	}
}

func proofOf(q url.Values) ([]byte, error) {
	text := q.Get(queryProof)
	if text == "" {
		return nil, nil
	}
	proof, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", queryProof, err)
	}
	return proof, nil
}

// query encodes the options; the body has the module.
func (h *SwapOptions) query() url.Values {
	q := url.Values{}
	setProof(q, h.Proof)
	if h.From != "" {
		q.Set(queryFrom, h.From)
	}
	if h.Force {
		q.Set(queryForce, strconv.FormatBool(true))
	}
	if c := h.Canary; c != nil {
		if c.Time != nil {
			q.Set(queryTime, c.Time.String())
		}
		q[queryNamespace] = c.Namespaces
		for key, value := range map[string]string{queryCanary: c.Share, querySelector: c.Selector} {
			if value != "" {
				q.Set(key, value)
			}
		}
	}
	return q
}

// swapOptions parses the query of a swap, which a user may have written by hand.
func swapOptions(q url.Values) (h SwapOptions, err error) {
	h.Force, h.From = q.Get(queryForce) == "true", q.Get(queryFrom)
	if h.Proof, err = proofOf(q); err != nil {
		return h, err
	}
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
		h.Canary.Time = &d
	}
	return h, nil
}
