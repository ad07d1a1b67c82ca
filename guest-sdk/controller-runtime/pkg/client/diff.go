package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// toMap returns obj as its JSON is. Numbers keep all their digits.
func toMap(obj any) (map[string]any, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("patch: encode %T: %w", obj, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("patch: decode %T: %w", obj, err)
	}
	return m, nil
}

// mergeDiff returns the merge patch (RFC 7386) that turns from into to.
func mergeDiff(from, to map[string]any) map[string]any {
	diff := map[string]any{}
	for key := range from {
		if _, ok := to[key]; !ok {
			diff[key] = nil
		}
	}
	for key, now := range to {
		was, ok := from[key]
		if !ok {
			diff[key] = now
			continue
		}
		wasMap, ok1 := was.(map[string]any)
		nowMap, ok2 := now.(map[string]any)
		switch {
		case ok1 && ok2:
			if inner := mergeDiff(wasMap, nowMap); len(inner) > 0 {
				diff[key] = inner
			}
		case !reflect.DeepEqual(was, now):
			diff[key] = now
		}
	}
	return diff
}
