package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

// mirrorsOfSecret is asked for every change of every Secret: which mirrors copy
// it, or want its name for a copy. (Owns alone would find those that own it.)
func mirrorsOfSecret(ctx *wasmctl.Context, event wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
	return mirrors(ctx, func(mirror wasmctl.Object) bool { return source(mirror).Name == event.Key.Name })
}

// allMirrors answers a change of a namespace's labels: it may join or leave what
// any mirror selects.
func allMirrors(ctx *wasmctl.Context, _ wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
	return mirrors(ctx, func(wasmctl.Object) bool { return true })
}

// mirrors reads them from the host's cache. While that is not filled yet the
// error makes the host ask again, so no change is lost.
func mirrors(ctx *wasmctl.Context, concerned func(wasmctl.Object) bool) ([]wasmctl.ObjectKey, error) {
	keys := []wasmctl.ObjectKey{}
	all := wasmctl.ObjectRef{APIVersion: apiVersion, Kind: kind}
	for mirror, err := range ctx.Cache().All(all, wasmctl.CacheListOptions{}) {
		if err != nil {
			return nil, err
		}
		if concerned(mirror) {
			keys = append(keys, mirror.Key())
		}
	}
	return keys, nil
}
