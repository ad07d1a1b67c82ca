package main

import (
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"
)

// writeOutput writes v as JSON or YAML, or what text returns.
func writeOutput(w io.Writer, format string, v any, text func() []byte) error {
	var b []byte
	var err error
	switch format {
	case "json":
		return writeJSON(w, v)
	case "yaml":
		b, err = yaml.Marshal(v)
	default:
		b = text()
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// writeJSON writes a value as indented JSON and a line break.
func writeJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}
