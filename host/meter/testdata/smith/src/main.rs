// SPDX-License-Identifier: Apache-2.0
//! smith DIRECTORY FIRST NUMBER: for each seed writes SEED.wasm, a valid module
//! that ends whatever it does, and SEED.counted.wasm: the same module, which
//! counts the cost of each instruction before it runs. That is the dumb model
//! that host/meter's charges are compared with.

use std::{env, error::Error, fs, path::PathBuf};

use arbitrary::{Arbitrary, Unstructured};
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{ConstExpr, EntityType, ExportKind, GlobalType, ImportSection, Instruction, ValType};
use wasm_smith::{Config, MemoryOffsetChoices, Module};
use wasmparser::{Operator, Parser, Payload};

/// Rounds of loops and calls of functions, for all of a module's life.
const ROUNDS: u32 = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, dir, first, number] = args.as_slice() else {
        return Err("usage: smith DIRECTORY FIRST NUMBER".into());
    };
    let (dir, first, number): (_, u64, u64) = (PathBuf::from(dir), first.parse()?, number.parse()?);
    for seed in first..first + number {
        let wasm = module(seed).map_err(|e| format!("seed {seed}: {e}"))?;
        wasmparser::Validator::new().validate_all(&wasm).map_err(|e| format!("seed {seed}: {e}"))?;
        fs::write(dir.join(format!("{seed}.wasm")), &wasm)?;
        fs::write(dir.join(format!("{seed}.counted.wasm")), counted(&wasm)?)?;
    }
    Ok(())
}

/// bytes is an endless supply of random ones, by the generator SplitMix64.
fn bytes(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    })
    .flatten()
}

fn module(seed: u64) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut random = bytes(seed);
    let size = 1 << (10 + random.next().unwrap_or(0) % 7); // 1 to 64 KiB
    let data: Vec<u8> = random.take(size).collect();
    let mut u = Unstructured::new(&data);
    let config = config(Config::arbitrary(&mut u)?);
    let mut module = Module::new(config, &mut u)?;
    module.ensure_termination(ROUNDS)?;
    Ok(module.to_bytes())
}

/// config leaves chance what this host takes, and turns off what it refuses.
fn config(c: Config) -> Config {
    Config {
        available_imports: Some(imports()),
        allow_invalid_funcs: false,
        canonicalize_nans: true,
        custom_page_sizes_enabled: false,
        disallow_traps: false,
        exceptions_enabled: false,
        export_everything: true,
        extended_const_enabled: false,
        gc_enabled: false,
        max_funcs: 30,
        max_imports: 5,
        max_instructions: 600,
        max_memories: 1,
        max_memory32_bytes: 16 << 16,
        max_table_elements: 1000,
        max_tables: 3,
        memory64_enabled: false,
        memory_max_size_required: true,
        memory_offset_choices: MemoryOffsetChoices(90, 8, 2),
        min_funcs: 1,
        min_imports: 0,
        min_uleb_size: 1,
        relaxed_simd_enabled: false,
        shared_everything_threads_enabled: false,
        table_max_size_required: true,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        ..c
    }
}

/// imports are what a module may import: the test serves each of them.
fn imports() -> Vec<u8> {
    use ValType::{F64, I32, I64};
    let signatures: [(&[ValType], &[ValType]); 4] = [(&[], &[]), (&[I32], &[I32]), (&[I64, F64], &[]), (&[], &[I64])];
    let (mut types, mut imports) = (wasm_encoder::TypeSection::new(), ImportSection::new());
    for (i, (params, results)) in signatures.into_iter().enumerate() {
        types.ty().function(params.iter().copied(), results.iter().copied());
        imports.import("env", &format!("f{i}"), EntityType::Function(i as u32));
    }
    let mut module = wasm_encoder::Module::new();
    module.section(&types).section(&imports);
    module.finish()
}

/// counted is the module with an exported global "count", to which each
/// instruction adds its cost, and one named "exact": 0 where it is the least.
fn counted(wasm: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut counter = Counter { imported: 0, global: 0, exact: true };
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::ImportSection(s) => counter.imported = s.count(), // only functions are
            Payload::GlobalSection(s) => counter.global = s.count(),   // none is imported
            Payload::CodeSectionEntry(body) => {
                for op in body.get_operators_reader()? {
                    counter.exact &= !bulk(&op?);
                }
            }
            _ => {}
        }
    }
    let mut module = wasm_encoder::Module::new();
    counter.parse_core_module(&mut module, Parser::new(0), wasm)?;
    Ok(module.finish())
}

struct Counter {
    imported: u32, // functions
    global: u32,   // its index
    exact: bool,
}

impl Reencode for Counter {
    type Error = std::convert::Infallible;

    fn parse_global_section(
        &mut self,
        globals: &mut wasm_encoder::GlobalSection,
        section: wasmparser::GlobalSectionReader<'_>,
    ) -> Result<(), reencode::Error<Self::Error>> {
        reencode::utils::parse_global_section(self, globals, section)?;
        let ty = |mutable| GlobalType { val_type: ValType::I64, mutable, shared: false };
        globals.global(ty(true), &ConstExpr::i64_const(0));
        globals.global(ty(false), &ConstExpr::i64_const(self.exact.into()));
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut wasm_encoder::ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Result<(), reencode::Error<Self::Error>> {
        reencode::utils::parse_export_section(self, exports, section)?;
        exports.export("count", ExportKind::Global, self.global);
        exports.export("exact", ExportKind::Global, self.global + 1);
        Ok(())
    }

    fn parse_function_body(
        &mut self,
        code: &mut wasm_encoder::CodeSection,
        body: wasmparser::FunctionBody<'_>,
    ) -> Result<(), reencode::Error<Self::Error>> {
        let mut f = self.new_function_with_parsed_locals(&body)?;
        for op in body.get_operators_reader()? {
            let op = op?;
            let cost = cost(&op, self.imported);
            if cost > 0 {
                f.instruction(&Instruction::GlobalGet(self.global));
                f.instruction(&Instruction::I64Const(cost));
                f.instruction(&Instruction::I64Add);
                f.instruction(&Instruction::GlobalSet(self.global));
            }
            f.instruction(&self.instruction(op)?);
        }
        code.function(&f);
        Ok(())
    }
}

/// bulk says that an instruction costs more the more it moves.
fn bulk(op: &Operator<'_>) -> bool {
    use Operator::*;
    matches!(
        op,
        MemoryInit { .. }
            | MemoryCopy { .. }
            | MemoryFill { .. }
            | TableInit { .. }
            | TableCopy { .. }
            | TableFill { .. }
    )
}

/// cost is that of docs/metering.md, where so many functions are imported.
fn cost(op: &Operator<'_>, imported: u32) -> i64 {
    use Operator::*;
    match *op {
        Block { .. } | Loop { .. } | Else | End | Nop | Drop => 0,
        Call { function_index } | ReturnCall { function_index } if function_index < imported => 40,
        Call { .. } | ReturnCall { .. } => 3,
        CallIndirect { .. } | ReturnCallIndirect { .. } => 8,
        MemoryGrow { .. } | TableGrow { .. } => 100,
        I32DivS | I32DivU | I32RemS | I32RemU | I64DivS | I64DivU | I64RemS | I64RemU => 4,
        F32Sqrt | F32Div | F64Sqrt | F64Div | F32x4Sqrt | F32x4Div | F64x2Sqrt | F64x2Div => 4,
        _ if bulk(op) => 10,
        _ => 1,
    }
}
