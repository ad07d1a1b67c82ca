package replay

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// playbackKey is the key of a *playback in the context of a shadow's run.
type playbackKey struct{}

// playback answers the operations of a shadow's run as those of the live one
// were answered, where that asked for the same. The goroutine of the run has it.
type playback struct {
	recorded []*exchange // of the live run
	asked    []*exchange // by the shadow
}

// Player returns the API of a shadow's guests, over one that holds writes back.
func Player(dry *kubeapi.API) host.API { return player{dry} }

// player is the API of a shadow. It implements host.API.
type player struct {
	dry *kubeapi.API
}

// Call implements host.API. A read is answered as the same one of the live run
// was, the n-th as the n-th and then as the last; a write as the same one, and
// else as one of the same object. Lists by an index, which is each module's own, and
// requests that the live run did not make are read now, or sent to the API server with
// dryRun=All. The policy is the shadow's own.
func (p player) Call(ctx context.Context, op abi.Op, req []byte) abi.Response {
	play, ok := ctx.Value(playbackKey{}).(*playback)
	if !ok { // map, filter: nobody calls them
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

// find returns what answers an operation, or nil.
func (p *playback) find(e *exchange) *exchange {
	var last, near *exchange
	for _, r := range p.recorded {
		switch {
		case r.id == e.id && !r.used:
			r.used = true
			return r
		case r.id == e.id:
			last = r
		case r.to == e.to && e.writes() && near == nil:
			near = r
		}
	}
	if last == nil && near != nil {
		return near
	}
	return last
}
