//! The programs of several tests.

use lower::{Launch, LaunchIndex, Program};
use uop::{Const, DType, Op};

use crate::builder::Builder;
use crate::support::edges::{arity, lowered_ops_on};

/// No grid, or one of `extent` blocks of one work-item.
pub(crate) fn launch(grid: bool, extent: u64) -> Launch {
    match grid {
        true => Launch::Grid { grid: [extent, 1, 1].map(lower::Size::from), block: [1, 1, 1] },
        false => Launch::Range { extent: extent.into() },
    }
}

/// `grad_weight[clip(idx[i]), j] += grad_emb[i, j]`: f32[v, d], f32[n, d], i32[n]; on a grid with
/// 256 columns a block.
pub(crate) fn embedding_bwd(grid: bool, n: u64, v: u64, d: u64) -> Program {
    let launch = match grid {
        true => Launch::Grid { grid: [n, d / 256, 1].map(lower::Size::from), block: [256, 1, 1] },
        false => Launch::Range { extent: n.into() },
    };
    let mut b = Builder::new("embedding_bwd", launch);
    let grad_weight = b.param("grad_weight", DType::F32, &[v, d], true);
    let grad_emb = b.param("grad_emb", DType::F32, &[n, d], false);
    let idx = b.param("idx", DType::I32, &[n], false);
    let element = |b: &mut Builder, i, j| {
        let [zero, last] = [b.i32(0), b.i32(v as i32 - 1)];
        let width = b.i64(d as i64);
        let token = b.load(idx, i);
        let token = b.alu(Op::Max, &[token, zero]);
        let token = b.alu(Op::Min, &[token, last]);
        let token = b.cast(token, DType::I64);
        let row = b.exact(Op::Mul, &[i, width]);
        let from = b.exact(Op::Add, &[row, j]);
        let row = b.exact(Op::Mul, &[token, width]);
        let to = b.exact(Op::Add, &[row, j]);
        let value = b.load(grad_emb, from);
        b.atomic_add(grad_weight, to, value);
    };
    if grid {
        let i = b.launch(LaunchIndex::Block(0), DType::I64);
        let j_outer = b.launch(LaunchIndex::Block(1), DType::I32);
        let j_inner = b.launch(LaunchIndex::Item(0), DType::I32);
        let block = b.i32(256);
        let j = b.exact(Op::Mul, &[j_outer, block]);
        let j = b.exact(Op::Add, &[j, j_inner]);
        let j = b.cast(j, DType::I64);
        element(&mut b, i, j);
    } else {
        b.instances(|b, i| {
            let [zero, width] = [b.i64(0), b.i64(d as i64)];
            b.range(zero, width, |b, j| element(b, i, j));
        });
    }
    b.finish()
}

/// `y[i] = (mask[i] ? a * x[i] : 0) + y[i]` for the even `i`: bool[n], f32[n], f32[n].
pub(crate) fn saxpy(grid: bool, n: u64) -> Program {
    let mut b = Builder::new("saxpy", launch(grid, n));
    let y = b.param("y", DType::F32, &[n], true);
    let x = b.param("x", DType::F32, &[n], false);
    let mask = b.param("mask", DType::Bool, &[n], false);
    b.instances(|b, i| {
        let [zero, one] = [b.i64(0), b.i64(1)];
        let odd = b.alu(Op::And, &[i, one]);
        let even = b.alu(Op::CmpEq, &[odd, zero]);
        b.when(even, |b| {
            let [a, none] = [b.f32(2.5), b.f32(-0.0)];
            let keep = b.load(mask, i);
            let value = b.load_if(keep, x, i, none);
            let scaled = b.alu(Op::Mul, &[a, value]);
            let old = b.load(y, i);
            let new = b.alu(Op::Add, &[scaled, old]);
            b.store(y, i, new);
        });
    });
    b.finish()
}

/// `counts[keys[i] & 7] += 1`, and the sum of all keys in `total[0]`: i32[8], i64[1], i32[n].
pub(crate) fn histogram(grid: bool, n: u64) -> Program {
    let mut b = Builder::new("histogram", launch(grid, n));
    let counts = b.param("counts", DType::I32, &[8], true);
    let total = b.param("total", DType::I64, &[1], true);
    let keys = b.param("keys", DType::I32, &[n], false);
    b.instances(|b, i| {
        let [seven, one] = [b.i32(7), b.i32(1)];
        let zero = b.i64(0);
        let key = b.load(keys, i);
        let bin = b.alu(Op::And, &[key, seven]);
        b.atomic_add(counts, bin, one);
        let wide = b.cast(key, DType::I64);
        b.atomic_add(total, zero, wide);
    });
    b.finish()
}

/// `out[i] = Σ_j max(x[i, j], 0) · w[j]` over i32 loops, in a register; in another, the largest
/// row: f32[n], f32[n, 5], f32[5], f32[n].
pub(crate) fn registers(grid: bool, n: u64) -> Program {
    let mut b = Builder::new("registers", launch(grid, n));
    let out = b.param("out", DType::F32, &[n], true);
    let x = b.param("x", DType::F32, &[n, 5], false);
    let w = b.param("w", DType::F32, &[5], false);
    // Not used.
    b.param("spare", DType::F32, &[n], false);
    let sum = b.register(DType::F32, 1);
    let terms = b.register(DType::F32, 5);
    let scratch = b.register(DType::I32, 2);
    b.instances(|b, i| {
        let [zero, five] = [b.i32(0), b.i32(5)];
        let nothing = b.f32(0.0);
        b.store(sum, zero, nothing);
        // Written, never read.
        b.store(scratch, zero, five);
        let row = b.cast(i, DType::I32);
        let row = b.exact(Op::Mul, &[row, five]);
        b.range(zero, five, |b, j| {
            let at = b.exact(Op::Add, &[row, j]);
            let value = b.load(x, at);
            let value = b.alu(Op::Max, &[value, nothing]);
            b.store(terms, j, value);
        });
        b.range(zero, five, |b, j| {
            let value = b.load(terms, j);
            let weight = b.load(w, j);
            let old = b.load(sum, zero);
            let term = b.alu(Op::Mul, &[value, weight]);
            let new = b.alu(Op::Add, &[old, term]);
            b.store(sum, zero, new);
        });
        let value = b.load(sum, zero);
        b.store(out, i, value);
    });
    b.finish()
}

/// Operators next to each other in every way that needs parentheses, or a compiler would warn of:
/// i32[10], f32[4], bool[4], i64[3], then the operands i32[4], f32[3], bool[3].
pub(crate) fn torture(grid: bool) -> Program {
    let mut b = Builder::new("torture", launch(grid, 1));
    let ints = b.param("ints", DType::I32, &[10], true);
    let floats = b.param("floats", DType::F32, &[4], true);
    let bools = b.param("bools", DType::Bool, &[4], true);
    let longs = b.param("longs", DType::I64, &[3], true);
    let p = b.param("p", DType::I32, &[4], false);
    let q = b.param("q", DType::F32, &[3], false);
    let r = b.param("r", DType::Bool, &[3], false);
    let at = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n| b.i32(n));
    let [x, y, z, t] = [0, 1, 2, 3].map(|n| b.load(p, at[n]));
    let [f, g, h] = [0, 1, 2].map(|n| b.load(q, at[n]));
    let [u, v, w] = [0, 1, 2].map(|n| b.load(r, at[n]));

    // x - (y - z), x - y - z.
    let right = b.exact(Op::Sub, &[y, z]);
    let right = b.exact(Op::Sub, &[x, right]);
    b.store(ints, at[0], right);
    let left = b.exact(Op::Sub, &[x, y]);
    let left = b.exact(Op::Sub, &[left, z]);
    b.store(ints, at[1], left);
    // (x + y) * -(-z), wrapping and not.
    for (n, exact) in [(2, true), (3, false)] {
        let op = if exact { Builder::exact } else { Builder::alu };
        let sum = op(&mut b, Op::Add, &[x, y]);
        let minus = op(&mut b, Op::Neg, &[z]);
        let plus = op(&mut b, Op::Neg, &[minus]);
        let product = op(&mut b, Op::Mul, &[sum, plus]);
        b.store(ints, at[n], product);
    }
    // x & y | z + 1, (x | y) & (z & t).
    let and = b.alu(Op::And, &[x, y]);
    let sum = b.alu(Op::Add, &[z, at[1]]);
    let or = b.alu(Op::Or, &[and, sum]);
    b.store(ints, at[4], or);
    let or = b.alu(Op::Or, &[x, y]);
    let and = b.alu(Op::And, &[z, t]);
    let and = b.alu(Op::And, &[or, and]);
    b.store(ints, at[5], and);
    // u ? (v ? x : y) : (w ? z : t).
    let yes = b.alu(Op::Where, &[v, x, y]);
    let no = b.alu(Op::Where, &[w, z, t]);
    let either = b.alu(Op::Where, &[u, yes, no]);
    b.store(ints, at[6], either);
    // The smallest integers, and arithmetic that wraps around them.
    let min = b.i32(i32::MIN);
    b.store(ints, at[7], min);
    let minus = b.alu(Op::Neg, &[min]);
    let twice = b.alu(Op::Mul, &[minus, x]);
    let less = b.alu(Op::Sub, &[twice, at[1]]);
    b.store(ints, at[8], less);
    let compare = b.alu(Op::CmpLt, &[x, y]);
    let compare = b.cast(compare, DType::I32);
    let compare = b.alu(Op::Add, &[compare, x]);
    b.store(ints, at[9], compare);

    // f - (g - h), -(f * g) - -h, and a sum whose product must not be fused into it.
    let right = b.alu(Op::Sub, &[g, h]);
    let right = b.alu(Op::Sub, &[f, right]);
    b.store(floats, at[0], right);
    let product = b.alu(Op::Mul, &[f, g]);
    let product = b.alu(Op::Neg, &[product]);
    let minus = b.alu(Op::Neg, &[h]);
    let difference = b.alu(Op::Sub, &[product, minus]);
    b.store(floats, at[1], difference);
    let product = b.alu(Op::Mul, &[f, g]);
    let sum = b.alu(Op::Add, &[product, h]);
    b.store(floats, at[2], sum);
    let infinity = b.f32(f32::NEG_INFINITY);
    let nan = b.f32(f32::from_bits(0xffc0_1234));
    let either = b.alu(Op::Where, &[u, infinity, nan]);
    b.store(floats, at[3], either);

    // (x < y) == (z < t), u && (v || w) || …, comparisons of comparisons.
    let left = b.alu(Op::CmpLt, &[x, y]);
    let right = b.alu(Op::CmpLt, &[z, t]);
    let same = b.alu(Op::CmpEq, &[left, right]);
    b.store(bools, at[0], same);
    let or = b.alu(Op::Or, &[v, w]);
    let and = b.alu(Op::And, &[u, or]);
    let less = b.alu(Op::CmpLt, &[f, g]);
    let both = b.alu(Op::And, &[less, v]);
    let or = b.alu(Op::Or, &[and, both]);
    b.store(bools, at[1], or);
    let less = b.alu(Op::CmpLt, &[f, g]);
    let other = b.alu(Op::CmpNe, &[less, v]);
    b.store(bools, at[2], other);
    let and = b.alu(Op::And, &[x, at[4]]);
    let never = b.alu(Op::CmpEq, &[and, at[8]]);
    b.store(bools, at[3], never);

    let min = b.i64(i64::MIN);
    let wide = b.cast(x, DType::I64);
    let sum = b.alu(Op::Sub, &[min, wide]);
    b.store(longs, at[0], sum);
    let big = b.i64(5_000_000_000);
    let wide = b.cast(x, DType::I64);
    let less = b.alu(Op::CmpLt, &[wide, big]);
    let less = b.cast(less, DType::I64);
    b.store(longs, at[1], less);
    let from = b.alu(Op::Mul, &[f, g]);
    let from = b.cast(from, DType::I64);
    b.store(longs, at[2], from);
    b.finish()
}

/// `out[i] = x[i] > 0 ? x[i] * w[i] : 0.1`, and the sum of both in f16, computed in f32: bf16[n],
/// f16[n], bf16[n], f16[n].
pub(crate) fn halves(grid: bool, n: u64) -> Program {
    let mut b = Builder::new("halves", launch(grid, n));
    let out = b.param("out", DType::BF16, &[n], true);
    let sums = b.param("sums", DType::F16, &[n], true);
    let x = b.param("x", DType::BF16, &[n], false);
    let w = b.param("w", DType::F16, &[n], false);
    b.instances(|b, i| {
        let tenth = Const::float(DType::BF16, 0.1).expect("it is a float");
        let (zero, tenth) = (b.f32(0.0), b.constant(DType::BF16, tenth));
        let half = b.constant(DType::F16, Const::F16(0x3800));
        let [x, w] = [b.load(x, i), b.load(w, i)].map(|half| b.cast(half, DType::F32));
        let product = b.alu(Op::Mul, &[x, w]);
        let product = b.cast(product, DType::BF16);
        let positive = b.alu(Op::CmpLt, &[zero, x]);
        let chosen = b.alu(Op::Where, &[positive, product, tenth]);
        b.store(out, i, chosen);
        let sum = b.alu(Op::Add, &[x, w]);
        let sum = b.cast(sum, DType::F16);
        let chosen = b.alu(Op::Where, &[positive, sum, half]);
        b.store(sums, i, chosen);
    });
    b.finish()
}

/// `bytes[i] = max(x[i] * 3 - x[i] * x[i], 200)`, `words[i] = words[i] * a - x[i]`, and
/// `scaled[i] = words[i] * scale[i]`: u8[n], u64[n], u64[n], u8[n], f64[n].
pub(crate) fn wrapping(grid: bool, n: u64) -> Program {
    let mut b = Builder::new("wrapping", launch(grid, n));
    let bytes = b.param("bytes", DType::U8, &[n], true);
    let words = b.param("words", DType::U64, &[n], true);
    let scaled = b.param("scaled", DType::U64, &[n], true);
    let x = b.param("x", DType::U8, &[n], false);
    let scale = b.param("scale", DType::F64, &[n], false);
    b.instances(|b, i| {
        let x = b.load(x, i);
        let [three, least] = [3, 200].map(|n| b.constant(DType::U8, Const::Int(n)));
        let triple = b.alu(Op::Mul, &[x, three]);
        let square = b.alu(Op::Mul, &[x, x]);
        let difference = b.alu(Op::Sub, &[triple, square]);
        let most = b.alu(Op::Max, &[difference, least]);
        b.store(bytes, i, most);
        let word = b.load(words, i);
        let factor = b.constant(DType::U64, Const::Int(0xd134_2543_de82_ef95));
        let product = b.alu(Op::Mul, &[word, factor]);
        let wide = b.cast(x, DType::U64);
        let word = b.alu(Op::Sub, &[product, wide]);
        b.store(words, i, word);
        let float = b.cast(word, DType::F64);
        let scale = b.load(scale, i);
        let product = b.alu(Op::Mul, &[float, scale]);
        let product = b.cast(product, DType::U64);
        b.store(scaled, i, product);
    });
    b.finish()
}

/// `out_K[i] = op(a[i], b[i])` for every op on operands of `dtype`, and every cast from it.
pub(crate) fn every_op(dtype: DType, n: u64) -> Program {
    let mut b = Builder::new("every_op", launch(false, n));
    let ops = lowered_ops_on(dtype);
    let outs: Vec<_> = ops
        .iter()
        .map(|(op, result)| b.param(&format!("out_{op}_{result}"), *result, &[n], true))
        .collect();
    let picked = b.param("out_where", dtype, &[n], true);
    let [x, y] = ["x", "y"].map(|name| b.param(name, dtype, &[n], false));
    let cond = b.param("cond", DType::Bool, &[n], false);
    b.instances(|b, i| {
        for (&(op, result), &out) in ops.iter().zip(&outs) {
            let [x, y] = [b.load(x, i), b.load(y, i)];
            let value = match op {
                Op::Cast => b.cast(x, result),
                _ => b.alu(op, &[x, y][..arity(op)]),
            };
            b.store(out, i, value);
        }
        let [cond, x, y] = [b.load(cond, i), b.load(x, i), b.load(y, i)];
        let value = b.alu(Op::Where, &[cond, x, y]);
        b.store(picked, i, value);
    });
    b.finish()
}
