// SPDX-License-Identifier: Apache-2.0

package main

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

// mirrorsOfSecret is called for every change of every Secret. It returns the mirrors that copy it,
// or need its name for a copy. (Owns alone would return only its owners.)
func mirrorsOfSecret(ctx *wasmctl.Context, event wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
	return mirrors(ctx, func(mirror wasmctl.Object) bool { return source(mirror).Name == event.Key.Name })
}

// allMirrors handles a change of a namespace's labels, after which any mirror may select it or no
// longer select it.
func allMirrors(ctx *wasmctl.Context, _ wasmctl.WatchEvent) ([]wasmctl.ObjectKey, error) {
	return mirrors(ctx, func(wasmctl.Object) bool { return true })
}

// mirrors reads the mirrors from the host's cache. While the cache is incomplete, the error makes
// the host retry, so no change is lost.
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
