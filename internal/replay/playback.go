// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/operation"
)

// playbackKey is the key of a *playback in the context of a shadow's run.
type playbackKey struct{}

// playback answers the operations of a shadow's run with the responses of the live run, if that made the same requests. It belongs to the
// goroutine of the run.
type playback struct {
	recorded []*exchange // of the live run
	asked    []*exchange // by the shadow
}

// Player returns the API for a shadow's guests. dry does not carry out writes.
func Player(dry *kubeapi.API) operation.API { return player{dry} }

// player is the API of a shadow. It implements operation.API.
type player struct {
	dry *kubeapi.API
}

// Call implements operation.API. A read gets the response of the same read of the live run, the n-th that of the n-th, and then that of the last
// one. A write gets the response of the same write or, if there is none, of one to the same object. Lists by an index, which is specific to
// each module, and requests that the live run did not make are sent to the API server, writes with dryRun=All. The policy is that of the
// shadow.
func (p player) Call(ctx context.Context, op abi.Op, req []byte) abi.Response {
	play, ok := ctx.Value(playbackKey{}).(*playback)
	if !ok { // map or filter, which are not called for a shadow
		return p.dry.Call(ctx, op, req)
	}
	e := newExchange(op, req, abi.Response{})
	if known := play.find(e); known != nil && op != abi.OpEventRecord && !e.indexed {
		if refused, admitted := p.dry.Admits(ctx, op, req); admitted {
			e.res = known.res
		} else {
			e.res = refused
		}
	} else {
		e.res = p.dry.Call(ctx, op, req)
	}
	if len(play.asked) < maxExchanges {
		play.asked = append(play.asked, e)
	}
	return e.res
}

// find returns the exchange that answers an operation, or nil.
func (p *playback) find(e *exchange) *exchange {
	var last, sameObject *exchange
	for _, r := range p.recorded {
		switch {
		case r.id == e.id && !r.used:
			r.used = true
			return r
		case r.id == e.id:
			last = r
		case r.to == e.to && e.writes() && sameObject == nil:
			sameObject = r
		}
	}
	if last == nil && sameObject != nil {
		return sameObject
	}
	return last
}
