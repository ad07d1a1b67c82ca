// SPDX-License-Identifier: Apache-2.0

// Command texts prints the text and the size of a random object of each type that client-go's scheme knows,
// and of its fields that are structs.
package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme.Scheme))
	types := map[string]reflect.Type{}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			types[gvk.String()] = typ
		}
	}
	var names []string
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		v := reflect.New(types[name])
		filler.Fill(v.Interface())
		show(name, v)
		for i := range v.Elem().NumField() {
			if f := v.Elem().Field(i); f.Kind() == reflect.Struct {
				show(name+"."+v.Elem().Type().Field(i).Name, f.Addr())
			}
		}
	}
}

// address matches the text of a pointer, which differs in each process: ObjectMeta has one.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

func show(name string, v reflect.Value) {
	size := -1
	if s, ok := v.Interface().(interface{ Size() int }); ok {
		size = s.Size()
	}
	text, ok := v.Interface().(fmt.Stringer)
	if !ok {
		fmt.Println(name, size)
		return
	}
	fmt.Println(name, size, strings.ReplaceAll(address.ReplaceAllString(text.String(), "0x"), "\n", " "))
}
