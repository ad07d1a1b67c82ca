//go:build !wasip1 && !tinygo.wasm

package imports

// Statuses that the stub answers (abi/ABI.md, section 7).
const statusUnavailable = -7

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

// Default is the host of a native build: there is none, and it says so.
var Default Host = stub{}

type stub struct{}

// Call implements Host.
func (stub) Call(*Op, []byte, []byte) (int32, int) { return statusUnavailable, 0 }

// Take implements Host.
func (stub) Take([]byte, int) int32 { return statusUnavailable }

// Log implements Host.
func (stub) Log(int32, []byte) {}

// LogLevel implements Host.
func (stub) LogLevel() int32 { return 1 << 30 }

// Metric implements Host.
func (stub) Metric(int32, string, float64) int32 { return statusUnavailable }

// NowMS implements Host.
func (stub) NowMS() int64 { return 0 }

// MonoNS implements Host.
func (stub) MonoNS() int64 { return 0 }

// Random implements Host.
func (stub) Random([]byte) int32 { return statusUnavailable }

// Cancelled implements Host.
func (stub) Cancelled() bool { return false }

// Budget implements Host.
func (stub) Budget(int32) int64 { return -1 }
