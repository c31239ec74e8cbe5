//! Random arithmetic: no warning and no wrong bit, whatever the expression.

use interp::{Data, alu};
use lower::Program;
use uop::{Const, DType, Op};

use crate::builder::Builder;
use crate::programs::launch;
use crate::run;
use crate::support::edges::{STORED, arity, data, differ, edges, lowered_ops_on};
use crate::support::tools;

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A value of the program, and what it is for each instance.
type Traced = (lower::Value, DType, Vec<Const>);

/// A program that computes at random, its inputs, and its buffers afterwards.
pub(crate) fn random(seed: u64, grid: bool) -> (Program, Vec<Data>, Vec<Data>) {
    let n = 50;
    let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut b = Builder::new("random", launch(grid, n as u64));
    let (mut inputs, mut want) = (Vec::new(), Vec::new());
    let sources: Vec<_> = STORED
        .iter()
        .flat_map(|&dtype| [0, 1].map(|k| (dtype, format!("{dtype}{k}"))))
        .map(|(dtype, name)| {
            let from = edges(dtype);
            let values: Vec<Const> = (0..n).map(|_| random.pick(&from)).collect();
            inputs.push(data(dtype, &values));
            want.push(data(dtype, &values));
            (b.param(&name, dtype, &[n as u64], false), dtype, values)
        })
        .collect();
    let sinks: Vec<_> = STORED
        .iter()
        .flat_map(|&dtype| [0, 1].map(|k| (dtype, format!("out_{dtype}{k}"))))
        .map(|(dtype, name)| {
            inputs.push(data(dtype, &vec![Const::zero(dtype); n]));
            (b.param(&name, dtype, &[n as u64], true), dtype)
        })
        .collect();
    b.instances(|b, i| {
        let mut values: Vec<Traced> = sources
            .iter()
            .map(|(param, dtype, values)| (b.load(*param, i), *dtype, values.clone()))
            .collect();
        for _ in 0..200 {
            let dtype = random.pick(&STORED);
            let of_type = |random: &mut Random, b: &mut Builder, values: &[Traced]| {
                if random.below(4) == 0 {
                    let value = random.pick(&edges(dtype));
                    return (b.constant(dtype, value), dtype, vec![value; n]);
                }
                let fit: Vec<&Traced> = values.iter().filter(|v| v.1 == dtype).collect();
                // Recent values more often, so that expressions grow.
                let near = fit.len().min(4);
                let from = if random.below(3) > 0 { fit.len() - near } else { 0 };
                fit[from + random.below(fit.len() - from)].clone()
            };
            let (x, y) = (of_type(random, b, &values), of_type(random, b, &values));
            let mut ops = lowered_ops_on(dtype);
            ops.push((Op::Where, dtype));
            let (op, result) = random.pick(&ops);
            let conds: Vec<&Traced> = values.iter().filter(|v| v.1 == DType::Bool).collect();
            let cond = conds[random.below(conds.len())].clone();
            let args = match op {
                Op::Where => vec![&cond, &x, &y],
                _ => [&x, &y][..arity(op)].to_vec(),
            };
            let ids: Vec<lower::Value> = args.iter().map(|v| v.0).collect();
            let results: Vec<Const> = (0..n)
                .map(|k| alu(op, result, &args.iter().map(|v| v.2[k]).collect::<Vec<_>>()))
                .collect::<Result<_, _>>()
                .expect("the table has it");
            let id = match op {
                Op::Cast => b.cast(ids[0], result),
                _ => b.alu(op, &ids),
            };
            values.push((id, result, results));
        }
        let mut newest: Vec<Traced> = values.into_iter().rev().collect();
        for (out, dtype) in &sinks {
            let at =
                newest.iter().position(|v| v.1 == *dtype).expect("two of each type are loaded");
            let (id, _, results) = newest.remove(at);
            b.store(*out, i, id);
            want.push(data(*dtype, &results));
        }
    });
    (b.finish(), inputs, want)
}

#[test]
fn random_arithmetic() {
    if tools::c_compilers("random arithmetic").is_empty() {
        return;
    }
    let rounds = std::env::var("UOPC_FUZZ_ROUNDS").map_or(6, |n| n.parse().expect("a number"));
    for seed in 0..rounds {
        let (program, inputs, want) = random(seed, false);
        run::check(&format!("random {seed}"), &program, &inputs, &want, differ);
    }
}
