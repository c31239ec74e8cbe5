//! What the tests of `lower` share: a small interpreter of [`Program`], and the comparison of a
//! lowered kernel with the oracle.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use interp::{Argument, Data, Functions, Options, OutOfBounds, alu, atomic};
use lower::program::{CallArg, Expr, Launch, LaunchIndex, Stmt, Storage, Value};
use lower::{Caps, GridLimits, LowerError, Program, Size, lower_observed};
use slotmap::SecondaryMap;
use uop::{Const, CustomArg, DType, Declaration, KernelGraph};

/// A target without a grid, as a CPU.
pub const NO_GRID: Caps = Caps { grid: None, narrow_index: false, templates: None, calls: true };

/// A target with a grid, as AMD's.
pub const GRID: Caps = Caps {
    grid: Some(GridLimits {
        blocks: [(1 << 31) - 1, 65535, 65535],
        block_items: 1024,
        total_items: (1 << 32) - 1,
    }),
    narrow_index: true,
    templates: None,
    calls: true,
};

/// Lowers `kernel`, verifying the graph after each pass and the program at the end.
#[track_caller]
pub fn lower(kernel: &KernelGraph, caps: &Caps) -> Result<Program, LowerError> {
    let program = lower_observed(&kernel.graph, kernel.sink, caps, |pass, graph, root| {
        if let Err(errors) = uop::verify(graph, root, pass.after) {
            panic!("{kernel}\nafter {}:\n{}\n{errors}", pass.name, uop::print(graph, root));
        }
    })?;
    if let Err(errors) = program.validate() {
        panic!("{kernel}\n{program}\n{errors}");
    }
    Ok(program)
}

/// What declared operations without a body do in these tests.
pub fn functions() -> Functions {
    let float = |value: Const| value.as_float().expect("a float") as f32;
    Functions::default()
        // Halves each of some elements.
        .with("halve", move |args| {
            let [Argument::Elements(elements)] = args else { panic!("a pointer") };
            for element in elements {
                *element = Const::from(float(*element) / 2.0);
            }
            None
        })
        // The sum of some elements and a value.
        .with("total", move |args| {
            let [Argument::Elements(elements), Argument::Value(value)] = args else {
                panic!("a pointer and a value")
            };
            let sum = elements.iter().fold(float(*value), |sum, &x| sum + float(x));
            Some(Const::from(sum))
        })
        // A value stored, and the old one returned.
        .with("swap", move |args| {
            let [Argument::Elements(elements), Argument::Value(value)] = args else {
                panic!("a pointer and a value")
            };
            Some(std::mem::replace(&mut elements[0], *value))
        })
}

/// What the oracle makes of `kernel`, its parallel points in an order chosen by `seed`.
pub fn oracle(
    kernel: &KernelGraph,
    inputs: &[Data],
    variables: &[(&str, i64)],
    seed: u64,
    out_of_bounds: OutOfBounds,
) -> Result<Vec<Data>, interp::Error> {
    let mut params = inputs.to_vec();
    let functions = functions();
    let options = Options { variables, seed, out_of_bounds, functions, ..Options::default() };
    interp::run(&kernel.graph, kernel.sink, &mut params, &options)?;
    Ok(params)
}

/// Lowers `kernel` for both kinds of target, runs it on `inputs` in several orders, and compares
/// every bit with the oracle. Returns the result.
#[track_caller]
pub fn check(kernel: &KernelGraph, inputs: &[Data]) -> Vec<Data> {
    check_with(kernel, inputs, &[])
}

/// [`check`], with these values of the kernel's variables.
#[track_caller]
pub fn check_with(kernel: &KernelGraph, inputs: &[Data], variables: &[(&str, i64)]) -> Vec<Data> {
    let guarded = |seed| match oracle(kernel, inputs, variables, seed, OutOfBounds::Guard) {
        Ok(params) => params,
        Err(error) => panic!("{kernel}\nthe oracle refuses this: {error}"),
    };
    let want = guarded(0);
    assert_agree(kernel, "the oracle in another order", &want, &guarded(1));
    for caps in [&NO_GRID, &GRID] {
        let program = match lower(kernel, caps) {
            Ok(program) => program,
            Err(error) => panic!("{kernel}\nlowering refuses this: {error}"),
        };
        for seed in 0..2 {
            let got = run(&program, inputs, variables, seed);
            assert_agree(kernel, &program.to_string(), &want, &got);
        }
    }
    want
}

/// Asserts that both hold the same bits.
#[track_caller]
pub fn assert_agree(kernel: &KernelGraph, what: &str, want: &[Data], got: &[Data]) {
    for (slot, (want, got)) in want.iter().zip(got).enumerate() {
        if !want.agrees(got) {
            panic!("{kernel}\n{what}\nargument {slot}: want {want:?}\ngot {got:?}");
        }
    }
}

/// Runs `program` on copies of `inputs`, its work-items or slices in an order chosen by `seed`.
///
/// # Panics
///
/// If the program breaks an invariant: an address outside its buffer, a register read before it
/// is written, an operation marked exact that is not.
#[track_caller]
pub fn run(program: &Program, inputs: &[Data], variables: &[(&str, i64)], seed: u64) -> Vec<Data> {
    let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
    let variables: Vec<i64> =
        program.variables.iter().map(|v| value(&v.name).expect("it has a value").1).collect();
    let size = |size: &Size| size.eval(&variables).expect("every variable has a value");
    let mut random = Random(seed);
    let mut params = inputs.to_vec();
    let mut instances: Vec<[u64; 6]> = Vec::new();
    match &program.launch {
        Launch::Grid { grid, block: [bx, by, bz] } => {
            let [gx, gy, gz] = grid.each_ref().map(size);
            let [bx, by, bz] = [*bx, *by, *bz];
            let points = gx * gy * gz * u64::from(bx) * u64::from(by) * u64::from(bz);
            for mut rest in 0..points {
                let lengths = [bx.into(), by.into(), bz.into(), gx, gy, gz];
                instances.push(lengths.map(|length| {
                    let digit = rest % length;
                    rest /= length;
                    digit
                }));
            }
        }
        Launch::Range { extent } => {
            let extent = size(extent);
            let mut begin = 0;
            while begin < extent {
                let end = begin + 1 + random.below(extent - begin);
                instances.push([begin, end, 0, 0, 0, 0]);
                begin = end;
            }
            // A slice may be empty.
            instances.push([extent, extent, 0, 0, 0, 0]);
            if extent == 1 && !uses_begin(program) {
                instances.pop();
            }
        }
    }
    random.shuffle(&mut instances);
    for instance in instances {
        let registers = program.registers.iter().map(|r| vec![None; r.len as usize]).collect();
        let values = SecondaryMap::new();
        let (params, variables) = (&mut params, &variables);
        Machine { program, params, variables, registers, values, instance }.block(&program.body);
    }
    params
}

/// Whether the body depends on the slice that it is given.
fn uses_begin(program: &Program) -> bool {
    let begin = |stmt: &Stmt| {
        matches!(stmt, Stmt::Let { expr: Expr::Launch(LaunchIndex::Begin | LaunchIndex::End), .. })
    };
    program.body.iter().any(begin)
}

struct Machine<'a> {
    program: &'a Program,
    params: &'a mut [Data],
    variables: &'a [i64],
    registers: Vec<Vec<Option<Const>>>,
    values: SecondaryMap<Value, Const>,
    /// Items x, y, z and blocks x, y, z; or begin and end.
    instance: [u64; 6],
}

impl Machine<'_> {
    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Let { value, expr } => {
                    let result = self.expr(self.program.values[*value], expr);
                    self.values.insert(*value, result);
                }
                Stmt::For { var, lo, hi, body } => {
                    for i in self.int(*lo)..self.int(*hi) {
                        self.values.insert(*var, Const::Int(i));
                        self.block(body);
                    }
                }
                Stmt::If { cond, body } => {
                    if self.values[*cond] == Const::Bool(true) {
                        self.block(body);
                    }
                }
                Stmt::Store { address, value } => {
                    let value = self.values[*value];
                    self.write(address.storage, self.int(address.offset), value);
                }
                Stmt::Call { result: value, gate: Some((gate, alt)), .. }
                | Stmt::Atomic { old: value, gate: Some((gate, alt)), .. }
                    if self.values[*gate] == Const::Bool(false) =>
                {
                    self.values.insert(value.expect("only a value has a gate"), self.values[*alt]);
                }
                Stmt::Call { result, custom, args, .. } => {
                    let declaration = &self.program.customs[*custom];
                    let value = self.call(declaration, args);
                    assert_eq!(result.is_some(), value.is_some(), "{}", declaration.name());
                    if let (Some(result), Some(value)) = (result, value) {
                        self.values.insert(*result, value);
                    }
                }
                Stmt::Atomic { op, address, values, old, .. } => {
                    let offset = self.int(address.offset);
                    let before = self.read(address.storage, offset);
                    let dtype = self.program.element(address.storage);
                    let values: Vec<Const> = values.iter().map(|&v| self.values[v]).collect();
                    let new = atomic(*op, dtype, before, &values).expect("a valid program");
                    self.write(address.storage, offset, new);
                    if let Some(old) = old {
                        self.values.insert(*old, before);
                    }
                }
            }
        }
    }

    fn expr(&self, dtype: DType, expr: &Expr) -> Const {
        match expr {
            Expr::Const(value) => *value,
            Expr::Launch(index) => {
                let i = match *index {
                    LaunchIndex::Item(dim) => dim.into(),
                    LaunchIndex::Block(dim) => 3 + usize::from(dim),
                    LaunchIndex::Begin => 0,
                    LaunchIndex::End => 1,
                    LaunchIndex::Variable(number) => {
                        return Const::Int(self.variables[number].into());
                    }
                };
                Const::Int(self.instance[i].into())
            }
            Expr::Alu { op, args, exact } => {
                let args: Vec<Const> = args.iter().map(|&arg| self.values[arg]).collect();
                let result = alu(*op, dtype, &args).expect("a valid program");
                if *exact {
                    assert_eq!(alu(*op, DType::Index, &args), Ok(result), "{op} is not exact");
                }
                result
            }
            Expr::Load { address, gate } => match gate {
                Some((gate, alt)) if self.values[*gate] == Const::Bool(false) => self.values[*alt],
                _ => self.read(address.storage, self.int(address.offset)),
            },
        }
    }

    fn call(&mut self, declaration: &Declaration, args: &[CallArg]) -> Option<Const> {
        let functions = functions();
        let function = functions.get(declaration.name()).expect("there is a function");
        let contract = declaration.contract();
        let value = |(arg, declared): (&CallArg, &CustomArg)| match (*arg, declared) {
            (CallArg::Address(at), &CustomArg::Pointer { elements, .. }) => {
                let elements = 0..i128::from(elements);
                let read = |k| self.read(at.storage, self.int(at.offset) + k);
                Argument::Elements(elements.map(read).collect())
            }
            (CallArg::Value(value), _) => Argument::Value(self.values[value]),
            (CallArg::Address(_), CustomArg::Value(_)) => panic!("an address for a value"),
        };
        let mut values: Vec<Argument> = args.iter().zip(&contract.args).map(value).collect();
        let result = function(&mut values);
        for (arg, value) in args.iter().zip(values) {
            if let (CallArg::Address(at), Argument::Elements(elements)) = (arg, value)
                && contract.effect.changes()
            {
                for (k, element) in (0..).zip(elements) {
                    self.write(at.storage, self.int(at.offset) + k, element);
                }
            }
        }
        result
    }

    fn read(&self, storage: Storage, offset: i128) -> Const {
        let offset = usize::try_from(offset).expect("an offset is not negative");
        match storage {
            Storage::Param(slot) => self.params[slot].get(offset),
            Storage::Register(number) => {
                let value = self.registers[number][offset];
                value.unwrap_or_else(|| panic!("{}reads undefined reg.{number}", self.program))
            }
        }
    }

    fn write(&mut self, storage: Storage, offset: i128, value: Const) {
        let offset = usize::try_from(offset).expect("an offset is not negative");
        match storage {
            Storage::Param(slot) => self.params[slot].set(offset, value),
            Storage::Register(number) => self.registers[number][offset] = Some(value),
        }
    }

    fn int(&self, value: Value) -> i128 {
        self.values[value].as_int().expect("an integer")
    }
}

/// A small generator: the 64-bit linear congruential one of Knuth's MMIX.
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Puts `items` in another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// `len` integers of `-bound..=bound` as f32: sums of them are exact in any order.
    pub fn floats(&mut self, len: usize, bound: u64) -> Data {
        let mut float = || self.below(2 * bound + 1) as f32 - bound as f32;
        Data::of::<f32>((0..len).map(|_| float()).collect())
    }

    /// `len` integers of `lo..=hi`.
    pub fn ints(&mut self, len: usize, lo: i32, hi: i32) -> Data {
        let width = (i64::from(hi) - i64::from(lo) + 1) as u64;
        Data::of::<i32>(
            (0..len).map(|_| (i64::from(lo) + self.below(width) as i64) as i32).collect(),
        )
    }
}
