// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOpcodes_AsWazero: every instruction that wazero knows is known here or
// refused by its name, and nothing else is known: read from wazero's source,
// so that a new version of it with more instructions fails this test.
func TestOpcodes_AsWazero(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(out)), "internal", "wasm", "instruction.go"), nil, 0)
	if err != nil {
		t.Skipf("SKIPPED: the source of wazero is not in the module cache: %v", err)
	}
	known := map[byte]map[uint32]bool{0: {}, opMisc: {}, opVector: {}, opAtomic: {}}
	for _, decl := range file.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				lit, ok := v.Values[i].(*ast.BasicLit)
				if !ok || lit.Kind != token.INT {
					continue
				}
				n, err := strconv.ParseUint(lit.Value, 0, 32)
				if err != nil {
					t.Fatal(err)
				}
				known[prefixOf(name.Name)][uint32(n)] = true
			}
		}
	}
	for prefix, table := range map[byte][]opcode{0: opcodes[:], opMisc: miscOpcodes, opVector: vectorOpcodes, opAtomic: atomicOpcodes} {
		if len(known[prefix]) < 15 {
			t.Fatalf("only %d instructions with prefix %#x found in wazero", len(known[prefix]), prefix)
		}
		for op := range uint32(0x120) {
			here := int(op) < len(table) && table[op].imm != immUnknown
			refused := refusedName(prefix, op) != ""
			if want := known[prefix][op] && !refused; here != want {
				t.Errorf("%#02x %#02x: known here %v, known to wazero %v, refused by name %v", prefix, op, here, known[prefix][op], refused)
			}
		}
	}
}

// prefixOf is the prefix of the instructions that a group of wazero's
// constants is for.
func prefixOf(name string) byte {
	for group, prefix := range map[string]byte{"OpcodeMisc": opMisc, "OpcodeVec": opVector, "OpcodeAtomic": opAtomic} {
		if strings.HasPrefix(name, group) && !strings.HasSuffix(name, "Prefix") {
			return prefix
		}
	}
	return 0
}
