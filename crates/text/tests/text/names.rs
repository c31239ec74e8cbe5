//! Names that mean something else in C.

use interp::Data;
use text::{C, HIP, emit, entry_name};
use uop::DType;

use crate::builder::Builder;
use crate::programs::launch;
use crate::run;
use crate::support::edges::differ;

#[test]
fn taken_names_get_underscores() {
    let names = [
        "int",
        "int_",
        "begin",
        "buffers",
        "v0",
        "i0",
        "r0",
        "float",
        "class",
        "__asm__",
        "_Bool",
        "INT32_MAX",
        "linux",
        "exp_range",
        "exp_",
        "x_0",
        "x",
        "f32_to_i32",
        "index",
        "uint32_t",
        "true",
        "bool",
        "bx",
    ];
    for grid in [false, true] {
        // A function of the C library, with another type.
        let mut b = Builder::new("exp", launch(grid, 1));
        let params = names.map(|name| b.param(name, DType::I32, &[1], true));
        let register = b.register(DType::I32, 1);
        b.instances(|b, i| {
            for param in params {
                let x = b.load(param, i);
                let sum = b.alu(uop::Op::Mul, &[x, x]);
                b.store(register, i, x);
                b.store(param, i, sum);
            }
        });
        let program = b.finish();
        if grid {
            assert_eq!(entry_name(&program, &HIP), "exp_");
            emit(&program, &HIP).expect("HIP has all of it");
        } else {
            assert_eq!(entry_name(&program, &C), "exp__range");
            let [threes, nines] = [3, 9].map(|n| vec![Data::of(vec![n]); names.len()]);
            run::check("names", &program, &threes, &nines, differ);
        }
    }
}
