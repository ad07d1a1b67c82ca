// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
)

// conversionCases are about convert.
func conversionCases() []Case {
	many := make([]object, 1000)
	for i := range many {
		many[i] = object{"i": i}
	}
	return []Case{
		{"convert.one", 4, "an object in another version", converts(object{"a": 1.5, "größe": list{nil, true}})},
		{"convert.many", 4, "1,000 objects, in their order", converts(many...)},
		{"convert.large", 4, "two objects of 1 MiB", converts(object{"pad": strings.Repeat("x", 1<<20)}, object{"pad": strings.Repeat("y", 1<<20)})},
		{"convert.report", 4, "the version to convert to, and each object", func(p *probe) error {
			if _, err := p.convert(object{}); err != nil {
				return err
			}
			report, _, err := p.reported(abi.ExportConvert)
			return first(err, alike("report", report, object{
				"entry": "convert", "to": convertTo, "from": caseGroup + "/v1", "key": object{"namespace": key.Namespace, "name": "n0"},
			}))
		}},
		{"convert.error", 4, "an error instead of the objects", func(p *probe) error {
			_, err := p.convert(object{}, object{"convert": object{"error": object{"class": "permanent", "message": "größe", "reason": "NotKnown"}}})
			e, ok := errors.AsType[*abi.ResultError](err)
			if !ok || e.Class != abi.ErrorPermanent || e.Reason != "NotKnown" || !strings.HasSuffix(e.Message, "größe") {
				return instead(err, "an error of the guest")
			}
			return nil
		}},
		{"convert.operations", 5, "config_get works, nothing else does", func(p *probe) error {
			return p.cacheOnly(abi.ExportConvert, false, func(steps list) error {
				_, err := p.convert(object{"convert": object{"steps": steps}})
				return err
			})
		}},
		{"convert.grown", 9, "a request with unknown keys, in another order", func(p *probe) error {
			_, out, err := p.rig.module.Exchange(p.ctx, abi.ExportConvert, encode(pairs{
				{"weather", list{object{"to": 1}}}, {"objects", list{caseObject(object{})}}, {"to", convertTo}, {"v", 1},
			}))
			if err == nil {
				_, err = abi.DecodeConversionResult(out, 1)
			}
			return err
		}},
		{"convert.trap", 2, "a trap ends the call, and the next one is as if nothing had happened", func(p *probe) error {
			_, err := p.convert(object{"convert": object{"steps": list{do("trap", "text", "x")}}})
			return first(failedBy(err, abi.FailureTrap), alive(p))
		}},
	}
}

// convertTo is the version to which the cases convert.
const convertTo = caseGroup + "/v2"

// convert converts objects with these specs.
func (p *probe) convert(specs ...object) ([][]byte, error) {
	c := &abi.Conversion{ID: "u-2", Controller: "conformance", To: convertTo}
	for i, spec := range specs {
		o := caseObject(spec)
		o["metadata"].(object)["name"] = fmt.Sprint("n", i) //nolint:forcetypeassert // caseObject
		c.Objects = append(c.Objects, encode(o))
	}
	return p.rig.module.Convert(p.ctx, c)
}

// converts returns a check that convert changes nothing but the version of objects with these specs.
func converts(specs ...object) func(p *probe) error {
	return func(p *probe) error {
		got, err := p.convert(specs...)
		if err != nil {
			return err
		}
		for i, b := range got {
			want := caseObject(specs[i])
			want["apiVersion"], want["metadata"].(object)["name"] = convertTo, fmt.Sprint("n", i) //nolint:forcetypeassert // caseObject
			o, err := abi.DecodeObject(b)
			if err := first(err, same("object", o, want)); err != nil {
				return err
			}
		}
		return nil
	}
}
