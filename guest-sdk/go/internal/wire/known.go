package wire

import (
	"reflect"
	"time"
)

// knownTypes are types of apimachinery that nearly every object has several of.
// Their methods go by way of encoding/json, which takes five times as long as the
// rest of the field. They are known by name: a small module does not import them.
var knownTypes = map[string]func(p *plan){
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       planKubeTime,
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": planIntOrString,
}

// byName plans for a known type, and reports whether it is one.
func (p *plan) byName(t reflect.Type) bool {
	f := knownTypes[t.PkgPath()+"."+t.Name()]
	if f != nil {
		f(p)
	}
	return f != nil
}

// planKubeTime plans for metav1.Time, a struct of a time.Time: a zero one is
// null, and null a zero one.
func planKubeTime(p *plan) {
	p.nils = true
	p.zero = func(v reflect.Value) bool { return kubeTime(v).IsZero() }
	p.encode = func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if kubeTime(v).IsZero() {
			return AppendNil(dst), nil
		}
		return encodeTime(dst, v.Field(0), depth)
	}
	p.decode = func(d *decoder, v reflect.Value) error {
		t, err := d.time(v)
		if err == nil {
			v.Field(0).Set(reflect.ValueOf(t.Local()))
		}
		return err
	}
}

func kubeTime(v reflect.Value) time.Time {
	return v.Field(0).Interface().(time.Time) //nolint:forcetypeassert // its only field
}

// planIntOrString plans for intstr.IntOrString: a Type (0 is the number), an
// IntVal and a StrVal.
func planIntOrString(p *plan) {
	p.encode = func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if v.Field(0).Int() == 0 {
			return encodeScalar(dst, v.Field(1), depth)
		}
		return encodeString(dst, v.Field(2), depth)
	}
	p.decode = func(d *decoder, v reflect.Value) error {
		if TypeOf(d.b[d.pos:]) == String {
			v.Field(0).SetInt(1)
			return decodeString(d, v.Field(2))
		}
		v.Field(0).SetInt(0)
		return decodeScalar(d, v.Field(1))
	}
}
