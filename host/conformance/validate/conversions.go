// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// conversions converts all known objects to each other version of their kind, and back.
func (e *exam) conversions(ctx context.Context) {
	const id = "convert"
	trips, failed, problem := 0, 0, ""
	for _, c := range e.module.Manifest().Conversions {
		for _, o := range e.known {
			t := targetOf(o)
			if t.Group != c.Group || t.Kind != c.Kind {
				continue
			}
			for _, version := range c.Versions {
				if version == t.Version {
					continue
				}
				loss, err := e.trip(ctx, o, apiVersion(c.Group, version))
				there := fmt.Sprintf("%s %s to %s and back: ", c.Kind, t.Version, version)
				switch {
				case broke(err):
					e.add(id, Fail, there+oneLine(err), nextOf(err))
					return
				case err != nil:
					failed, problem = failed+1, there+clip(err.Error())
				case loss != "":
					e.add(id, Fail, there+loss+" changes", "keep what a version lacks in an annotation: a client that reads and writes one version must not change fields of another")
					return
				default:
					trips++
				}
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
	switch {
	case len(e.module.Manifest().Conversions) == 0:
	case failed > 0:
		e.add(id, Warn, fmt.Sprintf("%d objects cannot be converted, for example %s", failed, problem), "an error of convert fails reads of the object too: convert every object that the schema allows")
	case trips == 0:
		e.add(id, Warn, "not tried: no object of its kinds is known", "give objects of all versions with --object; the file may have several, and the CustomResourceDefinition for random ones")
	default:
		e.ok(id, "%d objects are the same after a conversion to another version and back", trips)
	}
}

// trip converts an object to another version and back. loss is the path of a field that differs.
func (e *exam) trip(ctx context.Context, o object, to string) (loss string, err error) {
	from, _ := o["apiVersion"].(string)
	there, err := e.converted(ctx, encode(o), to)
	if err != nil {
		return "", err
	}
	back, err := e.converted(ctx, there, from)
	if err != nil {
		return "", err
	}
	return lost(encode(o), back), nil
}

// converted converts one object, and does to the result what the API server does: it restores the metadata, and removes the fields that the
// schema of the version lacks.
func (e *exam) converted(ctx context.Context, b []byte, to string) ([]byte, error) {
	got, err := e.module.Convert(ctx, &abi.Conversion{ID: "validate", Controller: "validate", To: to, Objects: [][]byte{b}})
	if err != nil {
		return nil, err
	}
	was, err := abi.DecodeObject(b)
	if err != nil {
		return nil, err
	}
	is, err := abi.DecodeObject(got[0])
	if err != nil {
		return nil, err
	}
	if is["apiVersion"] != to || is["kind"] != was["kind"] {
		return nil, fmt.Errorf("the result is %v %v, want %s %v", is["apiVersion"], is["kind"], to, was["kind"])
	}
	before, _ := was["metadata"].(object)
	after, _ := is["metadata"].(object)
	meta := maps.Clone(before)
	for _, key := range []string{"labels", "annotations"} {
		delete(meta, key)
		if v, ok := after[key]; ok {
			meta[key] = v
		}
	}
	is["metadata"] = meta
	e.schemas.prune(is)
	return encode(is), nil
}

// lost returns the path of the first value of an object that another lacks or has changed. Empty values count as absent.
func lost(b, other []byte) string {
	was, _ := abi.DecodeObject(b)
	is, _ := abi.DecodeObject(other)
	return lostAt("", was, is)
}

func lostAt(path string, was, is any) string {
	switch was := was.(type) {
	case object:
		other, _ := is.(object)
		for _, key := range slices.Sorted(maps.Keys(was)) {
			if p := lostAt(strings.TrimPrefix(path+"."+key, "."), was[key], other[key]); p != "" {
				return p
			}
		}
		return ""
	case []any:
		other, _ := is.([]any)
		if len(was) > 0 && len(was) != len(other) {
			return path
		}
		for i, v := range was {
			if p := lostAt(path+"["+strconv.Itoa(i)+"]", v, other[i]); p != "" {
				return p
			}
		}
		return ""
	case nil:
		return ""
	}
	if was == is || is == nil && (was == false || was == int64(0) || was == 0.0 || was == "") {
		return ""
	}
	return path
}
