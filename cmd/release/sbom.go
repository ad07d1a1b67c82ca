// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"time"
)

// component is a module in the form of CycloneDX.
type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOfMaterials lists the modules in a binary in the form of CycloneDX.
func billOfMaterials(path string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("binary[%s]: %w", path, err)
	}
	main := describe(&info.Main)
	main.Type = "application"
	for _, s := range info.Settings {
		main.Properties = append(main.Properties, property{"go:build:" + s.Key, s.Value})
	}
	parts := []component{{Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + info.GoVersion}}
	for _, m := range info.Deps {
		parts = append(parts, describe(cmp.Or(m.Replace, m)))
	}
	b, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"timestamp": at.Format(time.RFC3339), "component": main, "properties": []property{{"file", filepath.Base(path)}}},
		"components": parts,
	}, "", "  ")
	return append(b, '\n'), err
}

func describe(m *debug.Module) component {
	c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
