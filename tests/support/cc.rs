//! Kernels in C, compiled by real compilers and run in a child process.

use std::fs;
use std::path::Path;

use lower::{Launch, Program, Size};
use tempfile::TempDir;
use text::{C, emit, entry_name};
use uop::DType;

use super::tools;

/// How a kernel is called: its typed function, slices from the last to the first, or slices at the
/// same time.
pub(crate) const MODES: [&str; 3] = ["whole", "slices", "threads"];

/// Options beside the strict ones.
const LEVELS: [&[&str]; 2] = [&["-O0"], &["-O3"]];

/// The options that find undefined behaviour: clang's runtime is a package of its own.
fn sanitize(compiler: &str) -> &'static [&'static str] {
    match compiler {
        "cc" => &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        _ => &["-O1", "-fsanitize=undefined", "-fsanitize-trap=undefined"],
    }
}

/// A kernel that a compiler has built, with a `main` that reads and writes its buffers.
pub(crate) struct Build {
    /// The compiler and its options, for messages.
    pub(crate) label: String,
    dir: TempDir,
    extent: Size,
}

/// Builds `program` with every compiler at every level; a warning fails.
#[track_caller]
pub(crate) fn builds(test: &str, program: &Program) -> Vec<Build> {
    builds_by(&tools::c_compilers(test), program)
}

/// Builds `program` with each of `compilers` at every level; a warning fails.
#[track_caller]
pub(crate) fn builds_by(compilers: &[&'static str], program: &Program) -> Vec<Build> {
    let mut builds = Vec::new();
    for &compiler in compilers {
        for level in LEVELS.into_iter().chain([sanitize(compiler)]) {
            builds.push(build(compiler, level, program));
        }
    }
    builds
}

/// Builds `program` with these options; a warning fails.
#[track_caller]
pub(crate) fn build(compiler: &str, level: &[&str], program: &Program) -> Build {
    let dir = tempfile::tempdir().expect("there is room for temporary files");
    let source = emit(program, &C).expect("C has all of it");
    fs::write(dir.path().join("kernel.c"), source).expect("the folder is writable");
    fs::write(dir.path().join("driver.c"), driver(program)).expect("it is writable");
    let paths = ["kernel.c", "driver.c", "kernel"].map(|name| dir.path().join(name));
    let [kernel, driver, out] = paths.each_ref().map(|p| p.to_str().expect("UTF-8"));
    let mut args = vec!["-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread"];
    args.extend(level);
    args.extend([kernel, driver, "-o", out]);
    tools::run(compiler, &args, Path::new("/dev/null"));
    Build { label: format!("{compiler} {level:?}"), dir, extent: extent(program) }
}

impl Build {
    /// Runs it on `buffers`, the bytes of each parameter, and returns what they are afterwards.
    #[track_caller]
    pub(crate) fn run(&self, mode: &str, variables: &[i64], buffers: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let input = self.dir.path().join("input");
        fs::write(&input, buffers.concat()).expect("the folder is writable");
        let kernel = self.dir.path().join("kernel");
        let extent = self.extent.eval(variables).expect("every variable has a value");
        let mut args = vec![mode.to_string(), extent.to_string()];
        args.extend(buffers.iter().map(|buffer| buffer.len().to_string()));
        args.extend(variables.iter().map(|value| value.to_string()));
        let out = tools::run(kernel.to_str().expect("UTF-8"), &args, &input).stdout;
        let mut rest = &out[..];
        let pieces = buffers.iter().map(|buffer| {
            let (piece, more) = rest.split_at(buffer.len());
            rest = more;
            piece.to_vec()
        });
        let pieces = pieces.collect();
        assert!(rest.is_empty());
        pieces
    }
}

fn extent(program: &Program) -> Size {
    match &program.launch {
        Launch::Range { extent } => extent.clone(),
        Launch::Grid { .. } => panic!("no grid in C"),
    }
}

/// A program that reads the buffers, calls the kernel and writes the buffers.
fn driver(program: &Program) -> String {
    let entry = entry_name(program, &C);
    let name = entry.strip_suffix("_range").expect("it ends so");
    let types = program.params.iter().map(|param| {
        let constant = if param.mutable { "" } else { "const " };
        let dtype = match param.dtype {
            DType::Bool => "_Bool",
            DType::I8 => "int8_t",
            DType::I16 => "int16_t",
            DType::I32 => "int32_t",
            DType::I64 => "int64_t",
            DType::U8 => "uint8_t",
            DType::U16 | DType::F16 | DType::BF16 => "uint16_t",
            DType::U32 => "uint32_t",
            DType::U64 => "uint64_t",
            DType::F32 => "float",
            DType::F64 => "double",
            DType::Void | DType::Index => panic!("no {} in memory", param.dtype),
        };
        format!("{constant}{dtype} *")
    });
    let types = types.chain(program.variables.iter().map(|_| "int64_t".to_string()));
    let types = types.collect::<Vec<String>>().join(", ");
    let types = if types.is_empty() { "void".to_string() } else { types };
    let (n, m) = (program.params.len(), program.variables.len());
    let args = (0..n).map(|i| format!("b[{i}]")).chain((0..m).map(|i| format!("v[{i}]")));
    let args = args.collect::<Vec<String>>().join(", ");
    format!(
        r#"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void {entry}(void *const *, const int64_t *, int64_t, int64_t);
void {name}({types});
static void *b[{n} + 1];
static size_t sizes[{n} + 1];
static int64_t v[{m} + 1];
static int64_t cuts[4];
static void *slice(void *cut) {{
    const int64_t *at = cut;
    if (at[0] < at[1]) {entry}(b, v, at[0], at[1]);
    return 0;
}}
int main(int argc, char **argv) {{
    if (argc != 3 + {n} + {m}) return 3;
    const int64_t extent = strtoll(argv[2], 0, 10);
    cuts[1] = extent / 3, cuts[2] = extent / 2, cuts[3] = extent;
    for (int i = 0; i < {n}; ++i) sizes[i] = strtoull(argv[3 + i], 0, 10);
    for (int i = 0; i < {m}; ++i) v[i] = strtoll(argv[3 + {n} + i], 0, 10);
    for (int i = 0; i < {n}; ++i) {{
        b[i] = malloc(sizes[i] + !sizes[i]);
        if (!b[i] || fread(b[i], 1, sizes[i], stdin) != sizes[i]) return 4;
    }}
    if (!strcmp(argv[1], "whole")) {{
        {name}({args});
    }} else if (!strcmp(argv[1], "slices")) {{
        for (int i = 2; i >= 0; --i) slice((void *)&cuts[i]);
    }} else {{
        pthread_t threads[3];
        for (int i = 0; i < 3; ++i) pthread_create(&threads[i], 0, slice, (void *)&cuts[i]);
        for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
    }}
    for (int i = 0; i < {n}; ++i) fwrite(b[i], 1, sizes[i], stdout);
    return 0;
}}
"#
    )
}
