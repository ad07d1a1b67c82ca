// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// Bind adds the flags of a spec's fields to a command: only those with the given names, or all if none
// is given.
func Bind(cmd *cobra.Command, s *v1alpha1.ControllerSpec, only ...string) {
	standard := &v1alpha1.ControllerSpec{CommonSpec: v1alpha1.CommonSpec{Rollout: &v1alpha1.Rollout{Canary: &v1alpha1.Canary{}}}}
	standard.Default()
	for i := range Fields {
		f := &Fields[i]
		if f.Flag == "" || len(only) > 0 && !slices.Contains(only, f.Flag) {
			continue
		}
		flag, get := f.flag(f.get(standard))
		flag.Value = bound{flag.Value, f, func() error {
			if text := flag.Value.String(); f.Meaning != nil && f.Meaning[text] == "" {
				return fmt.Errorf("want %s", strings.Join(f.Words, " or "))
			}
			return f.set(s, get())
		}}
		cmd.Flags().AddFlag(flag)
		if len(f.Extensions) > 0 {
			_ = cmd.MarkFlagFilename(f.Flag, f.Extensions...)
		}
		if len(f.Words) > 0 {
			directive := cobra.ShellCompDirectiveNoFileComp
			if f.Path == "limits" {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Flag, cobra.FixedCompletions(f.Words, directive))
		}
	}
}

// bound is the value of a flag that fills a field.
type bound struct {
	pflag.Value

	field *Field
	fill  func() error
}

// Set implements pflag.Value. It refuses an empty text, which may be that of an unset variable, because the
// flag would then mean as much as no flag: all namespaces, for example, or no impersonation. An empty selector
// is one that selects all objects.
func (b bound) Set(text string) error {
	if text == "" && !strings.HasSuffix(strings.ToLower(b.field.Path), "selector") {
		if b.field.Path == "namespaces" {
			return errors.New("want a namespace; for all namespaces, use --all-namespaces, or omit this flag")
		}
		return errors.New("must not be empty: omit the flag for its default")
	}
	if err := b.Value.Set(text); err != nil {
		return err
	}
	return b.fill()
}

// flag returns the flag of a field with this default, and a function that returns the flag's value in
// the form of JSON.
func (f *Field) flag(standard any) (flag *pflag.Flag, get func() any) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	text, _ := standard.(string)
	switch t := f.typeOf(); {
	case f.Type == typeCSV:
		v := set.StringSliceP(f.Flag, f.Short, nil, f.Help)
		get = func() any { return *v }
	case f.Type == typeDuration, t == reflect.TypeFor[v1alpha1.Duration]():
		v := set.DurationP(f.Flag, f.Short, v1alpha1.Duration(text).Or(0), f.Help)
		get = func() any { return v.String() }
	case f.Type == typeText || t == nil:
		v := set.StringP(f.Flag, f.Short, text, f.Help)
		get = func() any { return *v }
	case t.Kind() == reflect.Bool:
		is, _ := standard.(bool)
		v := set.BoolP(f.Flag, f.Short, is, f.Help)
		get = func() any { return *v }
	case t.Kind() == reflect.Int32:
		v := set.IntP(f.Flag, f.Short, 0, f.Help)
		get = func() any { return *v }
	case t.Kind() == reflect.Slice:
		v := set.StringArrayP(f.Flag, f.Short, nil, f.Help)
		get = func() any { return *v }
	case t.Kind() == reflect.Map:
		v := set.StringToStringP(f.Flag, f.Short, nil, f.Help)
		get = func() any { return *v }
	default:
		if f.Meaning != nil {
			text = ""
		}
		v := set.StringP(f.Flag, f.Short, text, f.Help)
		get = func() any { return cmp.Or(f.Meaning[*v], *v) }
	}
	flag = set.Lookup(f.Flag)
	if f.Implied != "" {
		flag.NoOptDefVal = f.Implied
	}
	return flag, get
}
