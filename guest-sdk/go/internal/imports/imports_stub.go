//go:build !wasip1 && !tinygo.wasm

package imports

// Op is an operation; natively it is its name.
type Op struct {
	// Name is the name of the import.
	Name string
	// Number is, where Name is "call", the number that it is called with.
	Number int32
}

// The operations of ABI v1.
var (
	APIGet      = Op{Name: "api_get"}
	APIList     = Op{Name: "api_list"}
	APICreate   = Op{Name: "api_create"}
	APIUpdate   = Op{Name: "api_update"}
	APIPatch    = Op{Name: "api_patch"}
	APIApply    = Op{Name: "api_apply"}
	APIDelete   = Op{Name: "api_delete"}
	CacheGet    = Op{Name: "cache_get"}
	CacheList   = Op{Name: "cache_list"}
	EventRecord = Op{Name: "event_record"}
	ConfigGet   = Op{Name: "config_get"}
)

// Numbered is the operation of that number, called by it.
func Numbered(id int32) Op { return Op{Name: "call", Number: id} }
