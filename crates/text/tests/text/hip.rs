//! HIP by a real compiler, to AMD code that nothing here can run.

use std::fs;

use lower::Program;
use text::{HIP, emit};

use crate::fuzz;
use crate::programs::{embedding_bwd, halves, histogram, registers, saxpy, torture, wrapping};
use crate::support::hip::{self, CHIPS};
use crate::support::tools::{self, hip_compiler};

fn compile(compiler: &str, program: &Program, chip: &str, more: &[&str]) -> String {
    hip::compile(compiler, &emit(program, &HIP).expect("HIP has all of it"), chip, more)
}

#[test]
fn every_program_compiles_for_every_chip() {
    let Some(compiler) = hip_compiler("HIP") else {
        return;
    };
    let programs = [
        embedding_bwd(true, 64, 50, 512),
        saxpy(true, 10),
        histogram(true, 9),
        registers(true, 7),
        torture(true),
        halves(true, 5),
        wrapping(true, 5),
    ];
    let random = [0, 1, 2].map(|seed| fuzz::random(seed, true).0);
    for program in programs.iter().chain(&random) {
        for chip in CHIPS {
            let asm = compile(compiler, program, chip, &[]);
            assert!(asm.contains("s_endpgm"), "{} for {chip} has code", program.name);
        }
    }
}

#[test]
fn atomics_stay_atomic() {
    let Some(compiler) = hip_compiler("HIP atomics") else {
        return;
    };
    for chip in CHIPS {
        let asm = compile(compiler, &embedding_bwd(true, 64, 50, 512), chip, &[]);
        assert!(asm.contains("global_atomic"), "{chip}: f32\n{asm}");
        assert!(asm.contains(".max_flat_workgroup_size: 256"), "{chip}: the exact block\n{asm}");
        let program = embedding_bwd(true, 64, 50, 512);
        let asm = compile(compiler, &program, chip, &["-munsafe-fp-atomics"]);
        assert!(asm.contains("global_atomic_add_f32"), "{chip}: f32 in one\n{asm}");
        let asm = compile(compiler, &histogram(true, 9), chip, &[]);
        // Named `_add_u32` from gfx11 on.
        assert!(asm.contains("global_atomic_add"), "{chip}: i32\n{asm}");
        assert!(
            asm.contains("global_atomic_add_x2") || asm.contains("global_atomic_add_u64"),
            "{chip}: i64\n{asm}"
        );
    }
}

#[test]
fn products_and_sums_are_not_fused() {
    let Some(compiler) = hip_compiler("HIP contraction") else {
        return;
    };
    for chip in CHIPS {
        let asm = compile(compiler, &saxpy(true, 10), chip, &[]);
        // Vector or scalar instructions, as the compiler likes.
        assert!(asm.contains("mul_f32") && asm.contains("add_f32"), "{chip}\n{asm}");
        assert!(!asm.contains("_fma") && !asm.contains("_mac"), "{chip}\n{asm}");
    }
}

/// The HIP headers define these macros; the text must not mind.
#[test]
fn macros_of_the_headers_are_welcome() {
    let Some(compiler) = hip_compiler("HIP macros") else {
        return;
    };
    let more = [
        "-D__global__=__attribute__((global))",
        "-D__device__=__attribute__((device))",
        "-D__launch_bounds__(...)=__attribute__((launch_bounds(__VA_ARGS__)))",
    ];
    compile(compiler, &torture(true), "gfx942", &more);
}

/// The options that change results are refused.
#[test]
fn fast_math_is_refused() {
    let dir = tempfile::tempdir().expect("there is room for temporary files");
    let path = dir.path().join("kernel.c");
    let source = emit(&saxpy(false, 4), &text::C).expect("C has all of it");
    fs::write(&path, source).expect("it is writable");
    for compiler in tools::c_compilers("fast math") {
        for option in ["-ffast-math", "-ffinite-math-only"] {
            let mut command = std::process::Command::new(compiler);
            command.args(["-std=c11", option, "-fsyntax-only"]).arg(&path);
            assert!(!command.output().expect("it starts").status.success(), "{command:?}");
        }
    }
}
