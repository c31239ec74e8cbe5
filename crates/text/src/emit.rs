//! The emitter: one pass over a [`Program`], whatever the dialect.
//!
//! A constant is spelled where it is used, and so is short arithmetic that is used once, in the
//! block that defines it. Everything else gets a `const` local, loads always, so that nothing moves
//! across an effect. Values without users are left out.

use std::collections::{BTreeSet, HashSet};

use lower::{Address, CallArg, Expr, Launch, LaunchIndex, Program, Stmt, Storage, Value};
use slotmap::SecondaryMap;
use uop::declare::fill;
use uop::{AtomicOp, Const, DType, Declaration, Effect, Op};

use crate::alu::Alu;
use crate::dialect::Dialect;
use crate::error::{EmitError, EmitErrorKind};
use crate::expr::{Prec, Text};
use crate::names::{Names, is_identifier};

/// Longer expressions are named, in bytes. It also bounds their depth: clang takes 256 levels of
/// brackets.
const INLINE: usize = 60;

/// The text of `program` in `dialect`: one source file, which states how to compile and call it.
///
/// # Errors
///
/// Everything that the dialect cannot express: a launch with a grid or without one, names, types,
/// ops, atomics.
///
/// # Panics
///
/// If `program` is not valid, by `Program::validate`.
pub fn emit(program: &Program, dialect: &Dialect) -> Result<String, EmitError> {
    let mut emitter = Emitter::new(program, dialect);
    if dialect.caps.grid.is_some() == matches!(program.launch, Launch::Grid { .. }) {
        emitter.block(&program.body, 1);
    } else {
        // The body has the indices of the other kind: no more of it makes sense.
        emitter.error(EmitErrorKind::Launch { grid: dialect.caps.grid.is_some() });
    }
    if emitter.errors.is_empty() {
        return Ok(emitter.finish().file());
    }
    Err(EmitError { kernel: program.name.clone(), target: dialect.name, kinds: emitter.errors })
}

/// A function that the text defines if it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// The float of this type with these bits.
    FromBits(DType),
    /// The bits of a float of this type.
    ToBits(DType),
    /// A float of the first type as a value of the second.
    Convert(DType, DType),
    /// An atomic of this type, by compare and exchange.
    Atomic(AtomicOp, DType),
}

/// What the body of a kernel uses.
#[derive(Debug, Default)]
pub(crate) struct Used {
    /// By slot.
    pub(crate) params: BTreeSet<usize>,
    /// The parameters that an atomic updates, by slot, and how.
    pub(crate) atomics: BTreeSet<(usize, AtomicOp)>,
    pub(crate) indices: HashSet<LaunchIndex>,
    pub(crate) helpers: BTreeSet<Helper>,
    /// Whether `bool`, `true` or `false` is spelled.
    pub(crate) bool: bool,
    /// Whether a 64-bit integer is spelled.
    pub(crate) i64: bool,
    /// Whether integers are compared.
    pub(crate) comparison: bool,
    registers: BTreeSet<usize>,
    registers_read: BTreeSet<usize>,
}

/// A kernel whose body is written, for the dialect to frame.
#[derive(Debug)]
pub(crate) struct Kernel<'a> {
    pub(crate) program: &'a Program,
    pub(crate) dialect: &'a Dialect,
    /// Its name in the text.
    pub(crate) name: String,
    /// The names of the parameters in the text, by slot.
    pub(crate) params: Vec<String>,
    /// The names of the variables in the text, by number.
    pub(crate) variables: Vec<String>,
    /// Statements, indented by one level, each line with its end.
    pub(crate) body: String,
    pub(crate) used: Used,
}

impl Kernel<'_> {
    /// The whole source file.
    fn file(&self) -> String {
        let mut out = self.head();
        out.push('\n');
        out += &(self.dialect.prelude)(self);
        out.push('\n');
        for &helper in &self.used.helpers {
            out += &helper.text(self.dialect);
            out.push('\n');
        }
        out + &(self.dialect.functions)(self)
    }

    /// The head comment.
    fn head(&self) -> String {
        let title = self.dialect.name.to_uppercase();
        let mut out = format!("/*\n * {}: a kernel in {title}, written by uopc.\n *\n", self.name);
        let params = self.program.params.iter().zip(&self.params);
        let rows: Vec<[String; 3]> = params
            .map(|(param, name)| {
                let access = if param.mutable { "mutable" } else { "read-only" };
                let shape: Vec<String> =
                    param.shape.iter().map(|size| size.text(&self.variables)).collect();
                let ty = format!("{}[{}]", param.dtype, shape.join(", "));
                [name.clone(), ty, access.to_owned()]
            })
            .chain(self.program.variables.iter().zip(&self.variables).map(|(variable, name)| {
                let range = format!("{} to {}", variable.lo, variable.hi);
                [name.clone(), variable.dtype.to_string(), range]
            }))
            .collect();
        // What is longer stands out: no row is padded to the length of another's name.
        let width =
            |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0).min(INLINE);
        let (names, types) = (width(0), width(1));
        for [name, ty, access] in &rows {
            out += &format!(" *   {name:names$}  {ty:types$}  {access}\n");
        }
        if !rows.is_empty() {
            out += " *\n";
        }
        out += &(self.dialect.notes)(self);
        out + " */\n"
    }
}

impl Helper {
    /// The helpers that its text calls.
    fn needs(self) -> &'static [Helper] {
        const BITS: &[Helper] = &[Helper::FromBits(DType::F32), Helper::ToBits(DType::F32)];
        match self {
            Helper::Convert(DType::F16, _) | Helper::Convert(_, DType::F16) => BITS,
            Helper::Convert(DType::BF16, _) => &BITS[..1],
            Helper::Convert(_, DType::BF16) => &BITS[1..],
            _ => &[],
        }
    }

    fn text(self, dialect: &Dialect) -> String {
        let (qualifier, name) = (dialect.helper, self.name());
        let ty = |dtype| dialect.name_of(dtype);
        let bits_of = |dtype| ty(if dtype == DType::F64 { DType::U64 } else { DType::U32 });
        match self {
            Helper::FromBits(dtype) => {
                let (float, bits) = (ty(dtype), bits_of(dtype));
                format!(
                    "{qualifier} {float} {name}({bits} bits) {{\n    \
                         {float} value;\n    \
                         __builtin_memcpy(&value, &bits, sizeof value);\n    \
                         return value;\n\
                     }}\n",
                )
            }
            Helper::ToBits(dtype) => {
                let (float, bits) = (ty(dtype), bits_of(dtype));
                format!(
                    "{qualifier} {bits} {name}({float} value) {{\n    \
                         {bits} bits;\n    \
                         __builtin_memcpy(&bits, &value, sizeof bits);\n    \
                         return bits;\n\
                     }}\n",
                )
            }
            Helper::Convert(DType::BF16, _) => format!(
                "{qualifier} float {name}({half} half) {{\n    \
                     return f32_from_bits(({bits})half << 16);\n\
                 }}\n",
                half = ty(DType::BF16),
                bits = ty(DType::U32),
            ),
            // A float whose exponent and mantissa are the half's is too small by 2^112, the
            // difference of the two exponent biases.
            Helper::Convert(DType::F16, _) => format!(
                "{qualifier} float {name}({half} half) {{\n    \
                     const {bits} sign = ({bits})(half & 0x8000) << 16;\n    \
                     const {bits} rest = ({bits})(half & 0x7fff) << 13;\n    \
                     const float scaled = f32_from_bits(rest) * 5192296858534827628530496329220096.0f;\n    \
                     const {bits} bits = f32_to_bits(scaled);\n    \
                     return f32_from_bits(sign | ((half & 0x7c00) == 0x7c00 ? rest | 0x7f800000U : bits));\n\
                 }}\n",
                half = ty(DType::F16),
                bits = ty(DType::U32),
            ),
            Helper::Convert(_, DType::BF16) => format!(
                "/* Rounds to nearest even. */\n\
                 {qualifier} {half} {name}(float value) {{\n    \
                     const {bits} bits = f32_to_bits(value);\n    \
                     if (value != value) {{\n        \
                         return ({half})(bits >> 16 | 0x40U);\n    \
                     }}\n    \
                     return ({half})((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);\n\
                 }}\n",
                half = ty(DType::BF16),
                bits = ty(DType::U32),
            ),
            // What is below the least normal half is added to 0.5, whose last bit has the weight of
            // the least half; the sum rounds.
            Helper::Convert(_, DType::F16) => format!(
                "/* Rounds to nearest even. */\n\
                 {qualifier} {half} {name}(float value) {{\n    \
                     const {bits} sign = f32_to_bits(value) >> 16 & 0x8000U;\n    \
                     const {bits} size = f32_to_bits(value) & 0x7fffffffU;\n    \
                     {bits} half = (size - 0x37fff001U + (size >> 13 & 1U)) >> 13;\n    \
                     if (size < 0x38800000U) {{\n        \
                         half = f32_to_bits(f32_from_bits(size) + 0.5f) - 0x3f000000U;\n    \
                     }} else if (size >= 0x47800000U) {{\n        \
                         half = size > 0x7f800000U ? 0x7e00U : 0x7c00U;\n    \
                     }}\n    \
                     return ({half})(sign | half);\n\
                 }}\n",
                half = ty(DType::F16),
                bits = ty(DType::U32),
            ),
            Helper::Convert(from, to) => {
                let (min, max) = to.int_range().unwrap_or_default();
                // The bounds are powers of two: exact as floats, as the largest integers are not.
                let suffix = if from == DType::F64 { "" } else { "f" };
                let (lo, hi) = (format!("{min}.0{suffix}"), format!("{}.0{suffix}", max + 1));
                let [min, max] = [min, max].map(|value| Text::int(value, to).text);
                format!(
                    "/* Truncates and saturates; NaN gives 0. */\n\
                     {qualifier} {ty} {name}({from} x) {{\n    \
                         if ({lo} <= x && x < {hi}) {{\n        \
                             return ({ty})x;\n    \
                         }}\n    \
                         return x < 0.0{suffix} ? {min} : 0.0{suffix} < x ? {max} : 0;\n\
                     }}\n",
                    ty = ty(to),
                    from = ty(from),
                )
            }
            Helper::Atomic(AtomicOp::Cas, dtype) => format!(
                "{qualifier} {ty} {name}({ty} *p, {ty} old, {ty} next) {{\n    \
                     {exchange};\n    \
                     return old;\n\
                 }}\n",
                ty = ty(dtype),
                exchange = dialect.compare_exchange,
            ),
            Helper::Atomic(op, dtype) => format!(
                "{qualifier} {ty} {name}({ty} *p, {ty} value) {{\n    \
                     {ty} old, next;\n    \
                     {load};\n    \
                     do {{\n        \
                         next = {next};\n    \
                     }} while (!{exchange});\n    \
                     return old;\n\
                 }}\n",
                ty = ty(dtype),
                load = dialect.atomic_load,
                next = update(op, dtype.is_float()),
                exchange = dialect.compare_exchange,
            ),
        }
    }

    /// The name of the function, which is reserved.
    pub(crate) fn name(self) -> String {
        match self {
            Helper::FromBits(dtype) => format!("{dtype}_from_bits"),
            Helper::ToBits(dtype) => format!("{dtype}_to_bits"),
            Helper::Convert(from, to) => format!("{from}_to_{to}"),
            Helper::Atomic(op, dtype) => format!("atomic_{}_{dtype}", op.name()),
        }
    }
}

/// What an atomic makes of `old` and `value`, where a dialect has no builtin for it.
fn update(op: AtomicOp, is_float: bool) -> String {
    let (beyond, positive) = match op {
        AtomicOp::Max => ("value < old", ""),
        AtomicOp::Min => ("old < value", "!"),
        AtomicOp::Add => return "old + value".to_owned(),
        AtomicOp::Exchange => return "value".to_owned(),
        _ => unreachable!("every dialect has builtins for {op:?}"),
    };
    if !is_float {
        return format!("{beyond} ? old : value");
    }
    // Equal ones differ only if they are zeros.
    let equal = format!("(value == old && {positive}__builtin_signbit(value))");
    format!("old != old || {beyond} || {equal} ? old : value")
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not at all: nothing that is written uses it.
    Dead,
    /// Where it is used, if it may move there: once, in the block that defines it.
    Once,
    /// As a local.
    Named,
}

/// The first walk: decides the fate of each value, from users to sources.
#[derive(Default)]
struct Fates {
    /// How often a value is spelled, and the last block to do so.
    uses: SecondaryMap<Value, (u32, u32)>,
    fates: SecondaryMap<Value, Fate>,
    blocks: u32,
}

impl Fates {
    fn block(&mut self, body: &[Stmt]) {
        let block = self.blocks;
        self.blocks += 1;
        for stmt in body.iter().rev() {
            match stmt {
                Stmt::Let { value, expr } => {
                    let fate = match self.uses.get(*value) {
                        None => Fate::Dead,
                        Some(&(1, user)) if user == block => Fate::Once,
                        Some(_) => Fate::Named,
                    };
                    self.fates.insert(*value, fate);
                    if fate != Fate::Dead {
                        self.expr(expr, block);
                    }
                }
                Stmt::For { lo, hi, body, .. } => {
                    if has_effect(body) {
                        self.block(body);
                        self.uses(&[*lo, *hi], block);
                    }
                }
                Stmt::If { cond, body } => {
                    if has_effect(body) {
                        self.block(body);
                        self.uses(&[*cond], block);
                    }
                }
                Stmt::Store { address, value } => self.uses(&[address.offset, *value], block),
                Stmt::Atomic { address, values, old, gate, .. } => {
                    if let Some(old) = *old {
                        let used = self.uses.contains_key(old);
                        self.fates.insert(old, if used { Fate::Named } else { Fate::Dead });
                    }
                    self.uses(&[address.offset], block);
                    self.uses(values, block);
                    if let Some((gate, alternative)) = gate {
                        self.uses(&[*gate, *alternative], block);
                    }
                }
                Stmt::Call { result, args, gate, .. } => {
                    if let Some(result) = result {
                        let used = self.uses.contains_key(*result);
                        self.fates.insert(*result, if used { Fate::Named } else { Fate::Dead });
                    }
                    for arg in args {
                        match arg {
                            // A template may spell it twice.
                            CallArg::Value(value) => self.uses(&[*value, *value], block),
                            CallArg::Address(address) => self.uses(&[address.offset], block),
                        }
                    }
                    if let Some((gate, alternative)) = gate {
                        self.uses(&[*gate, *alternative], block);
                    }
                }
            }
        }
    }

    fn expr(&mut self, expr: &Expr, block: u32) {
        match expr {
            Expr::Const(_) | Expr::Launch(_) => {}
            Expr::Alu { op, args, .. } => {
                self.uses(args, block);
                if matches!(op, Op::Max | Op::Min) {
                    // They spell their operands twice.
                    self.uses(args, block);
                }
            }
            Expr::Load { address, gate } => {
                self.uses(&[address.offset], block);
                if let Some((gate, alternative)) = gate {
                    self.uses(&[*gate, *alternative], block);
                }
            }
        }
    }

    fn uses(&mut self, values: &[Value], block: u32) {
        for &value in values {
            let count = self.uses.get(value).map_or(0, |&(count, _)| count);
            self.uses.insert(value, (count + 1, block));
        }
    }
}

/// Whether running `body` can change anything outside it. A load whose value goes nowhere does not.
fn has_effect(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match stmt {
        // A pure call is here for a result that has a name.
        Stmt::Let { .. } => false,
        Stmt::Call { .. } => true,
        Stmt::For { body, .. } | Stmt::If { body, .. } => has_effect(body),
        Stmt::Store { .. } | Stmt::Atomic { .. } => true,
    })
}

/// The second walk: writes the statements, from sources to users.
struct Emitter<'a> {
    program: &'a Program,
    dialect: &'a Dialect,
    names: Names,
    name: String,
    params: Vec<String>,
    variables: Vec<String>,
    registers: Vec<String>,
    /// The variable of the loops at each depth.
    loops: Vec<String>,
    open_loops: usize,
    fates: SecondaryMap<Value, Fate>,
    texts: SecondaryMap<Value, Text>,
    used: Used,
    body: String,
    errors: Vec<EmitErrorKind>,
}

impl<'a> Emitter<'a> {
    fn new(program: &'a Program, dialect: &'a Dialect) -> Emitter<'a> {
        let mut names = Names::default();
        let name = names.kernel(&program.name);
        names.reserve(dialect.entry_name(&name));
        let params = program.params.iter().map(|param| names.keep(&param.name)).collect();
        let variables = program.variables.iter().map(|v| names.keep(&v.name)).collect();
        let registers = program.registers.iter().map(|_| names.number("r")).collect();
        let mut fates = Fates::default();
        fates.block(&program.body);
        let mut emitter = Emitter {
            program,
            dialect,
            names,
            name,
            params,
            variables,
            registers,
            loops: Vec::new(),
            open_loops: 0,
            fates: fates.fates,
            texts: SecondaryMap::new(),
            used: Used::default(),
            body: String::new(),
            errors: Vec::new(),
        };
        let params = program.params.iter().map(|param| &param.name);
        let variables = program.variables.iter().map(|variable| &variable.name);
        for name in [&program.name].into_iter().chain(params).chain(variables) {
            if !is_identifier(name) {
                emitter.error(EmitErrorKind::Name { name: name.clone() });
            }
        }
        let dtypes = program.params.iter().map(|param| param.dtype);
        for dtype in dtypes.chain(program.registers.iter().map(|register| register.dtype)) {
            emitter.dtype(dtype);
        }
        emitter
    }

    fn finish(mut self) -> Kernel<'a> {
        let mut registers = String::new();
        for number in self.used.registers.clone() {
            let register = &self.program.registers[number];
            let (dtype, name) = (self.dtype(register.dtype), &self.registers[number]);
            // Zeros, so that no compiler warns of reads that it cannot tell to come after a write.
            registers += &format!("    {dtype} {name}[{}] = {{0}};\n", register.len.max(1));
            if !self.used.registers_read.contains(&number) {
                registers += &format!("    (void){name};\n");
            }
        }
        Kernel {
            program: self.program,
            dialect: self.dialect,
            name: self.name,
            params: self.params,
            variables: self.variables,
            body: registers + &self.body,
            used: self.used,
        }
    }

    fn error(&mut self, kind: EmitErrorKind) {
        if !self.errors.contains(&kind) {
            self.errors.push(kind);
        }
    }

    /// The type's name.
    fn dtype(&mut self, dtype: DType) -> &'static str {
        self.used.bool |= dtype == DType::Bool;
        self.used.i64 |= matches!(dtype, DType::I64 | DType::U64);
        (self.dialect.types)(dtype).unwrap_or_else(|| {
            self.error(EmitErrorKind::Type { dtype });
            "void"
        })
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.body += &"    ".repeat(depth);
        self.body += text;
        self.body.push('\n');
    }

    fn block(&mut self, body: &[Stmt], depth: usize) {
        for stmt in body {
            match stmt {
                Stmt::Let { value, expr } => self.define(*value, expr, depth),
                Stmt::For { var, lo, hi, body } => {
                    if has_effect(body) {
                        self.for_loop(*var, *lo, *hi, body, depth);
                    }
                }
                Stmt::If { cond, body } => {
                    if has_effect(body) {
                        let cond = &self.texts[*cond].text;
                        self.line(depth, &format!("if ({cond}) {{"));
                        self.block(body, depth + 1);
                        self.line(depth, "}");
                    }
                }
                Stmt::Store { address, value } => {
                    let place = self.place(*address);
                    let value = &self.texts[*value].text;
                    self.line(depth, &format!("{place} = {value};"));
                }
                Stmt::Atomic { op, address, values, old, gate } => {
                    let dtype = self.program.element(address.storage);
                    let Some(atomic) = (self.dialect.atomic)(*op, dtype) else {
                        self.error(EmitErrorKind::Atomic { op: *op, dtype });
                        continue;
                    };
                    self.used.helpers.extend(atomic.helper);
                    if let Storage::Param(slot) = address.storage {
                        self.used.atomics.insert((slot, *op));
                    }
                    let place = self.place(*address);
                    let values: Vec<&str> =
                        values.iter().map(|&value| self.texts[value].text.as_str()).collect();
                    let (function, rest) = (atomic.function, atomic.rest);
                    let call = format!("{function}(&{place}, {}{rest})", values.join(", "));
                    let call = match gate {
                        None => Text::atom(call),
                        Some((gate, alternative)) => {
                            let [gate, alternative] =
                                [gate, alternative].map(|&value| &self.texts[value]);
                            Text::ternary(gate, &Text::atom(call), alternative)
                        }
                    };
                    match old.filter(|&old| self.fates[old] != Fate::Dead) {
                        None if gate.is_some() => {
                            self.line(depth, &format!("(void)({});", call.text));
                        }
                        None => self.line(depth, &format!("{};", call.text)),
                        Some(old) => {
                            let (ty, name) = (self.dtype(dtype), self.names.number("old"));
                            self.line(depth, &format!("const {ty} {name} = {};", call.text));
                            self.bind(old, Text::atom(name));
                        }
                    }
                }
                Stmt::Call { result, custom, args, gate } => {
                    self.call(*result, &self.program.customs[*custom], args, *gate, depth);
                }
            }
        }
    }

    /// The template of `custom`: a statement, or the value of a local.
    fn call(
        &mut self,
        result: Option<Value>,
        custom: &Declaration,
        args: &[CallArg],
        gate: Option<(Value, Value)>,
        depth: usize,
    ) {
        let template = self.dialect.caps.templates.and_then(|name| custom.template_for(name));
        let mut texts = Vec::new();
        for arg in args {
            texts.push(match arg {
                CallArg::Value(value) => self.texts[*value].at_least(Prec::Atom),
                CallArg::Address(address) => {
                    match (address.storage, custom.contract().effect) {
                        (Storage::Param(slot), Effect::Atomic(op)) => {
                            self.used.atomics.insert((slot, op));
                        }
                        (Storage::Param(_), _) => {}
                        (Storage::Register(number), _) => {
                            self.used.registers_read.insert(number);
                        }
                    }
                    format!("&{}", self.place(*address))
                }
            });
        }
        let Some(text) = template.and_then(|template| fill(template, &texts).ok()) else {
            return self.error(EmitErrorKind::Template { name: custom.name().to_owned() });
        };
        let text = text.trim();
        let Some(result) = result else {
            let end = if text.ends_with([';', '}']) { "" } else { ";" };
            return self.line(depth, &format!("{text}{end}"));
        };
        let text = text.strip_suffix(';').unwrap_or(text);
        let text = match gate {
            None => text.to_owned(),
            Some((gate, alternative)) => {
                let call = Text::atom(format!("({text})"));
                Text::ternary(&self.texts[gate], &call, &self.texts[alternative]).text
            }
        };
        let ty = self.dtype(self.program.values[result]);
        let name = self.names.number("v");
        if self.fates[result] == Fate::Dead {
            self.line(depth, &format!("(void)({text});"));
        } else {
            self.line(depth, &format!("const {ty} {name} = {text};"));
        }
        self.bind(result, Text::atom(name));
    }

    fn for_loop(&mut self, var: Value, lo: Value, hi: Value, body: &[Stmt], depth: usize) {
        if self.open_loops == self.loops.len() {
            let name = self.names.keep(&format!("i{}", self.open_loops));
            self.loops.push(name);
        }
        let name = self.loops[self.open_loops].clone();
        let dtype = self.dtype(self.program.values[var]);
        let lo = &self.texts[lo].text;
        let hi = self.texts[hi].at_least(Prec::Sum);
        let head = format!("for ({dtype} {name} = {lo}; {name} < {hi}; ++{name}) {{");
        self.texts.insert(var, Text::atom(name));
        self.line(depth, &head);
        self.open_loops += 1;
        self.block(body, depth + 1);
        self.open_loops -= 1;
        self.line(depth, "}");
    }

    fn define(&mut self, value: Value, expr: &Expr, depth: usize) {
        let fate = self.fates[value];
        if fate == Fate::Dead {
            return;
        }
        let dtype = self.program.values[value];
        let (text, name) = match expr {
            Expr::Const(constant) => {
                let text = self.constant(*constant, dtype);
                self.texts.insert(value, text);
                return;
            }
            Expr::Launch(index) => {
                if let LaunchIndex::Variable(number) = *index {
                    self.used.indices.insert(*index);
                    return self.bind(value, Text::atom(&self.variables[number]));
                }
                let Some(text) = (self.dialect.index)(*index) else {
                    self.error(EmitErrorKind::Index { index: *index });
                    return self.bind(value, Text::atom("0"));
                };
                self.used.indices.insert(*index);
                let prefix = match index {
                    LaunchIndex::Begin | LaunchIndex::End | LaunchIndex::Variable(_) => {
                        return self.bind(value, Text::atom(text));
                    }
                    LaunchIndex::Block(dim) => ["bx", "by", "bz"][usize::from(*dim)],
                    LaunchIndex::Item(dim) => ["tx", "ty", "tz"][usize::from(*dim)],
                };
                // The hardware's indices are unsigned.
                let ty = self.dtype(dtype);
                (Text::atom(text).cast(ty), self.names.keep(prefix))
            }
            Expr::Alu { op, args, exact } => {
                let text = self.arithmetic(*op, args, *exact, dtype);
                // A choice reads better with a name.
                let short = text.text.len() <= INLINE && text.prec != Prec::Ternary;
                if fate == Fate::Once && short {
                    return self.bind(value, text);
                }
                (text, self.names.number("v"))
            }
            Expr::Load { address, gate } => {
                let place = Text::atom(self.place(*address));
                let base = match address.storage {
                    Storage::Param(slot) => &self.params[slot],
                    Storage::Register(number) => {
                        self.used.registers_read.insert(number);
                        &self.registers[number]
                    }
                };
                let name = self.names.number(&format!("{base}_"));
                let text = match gate {
                    None => place,
                    Some((gate, alternative)) => {
                        Text::ternary(&self.texts[*gate], &place, &self.texts[*alternative])
                    }
                };
                (text, name)
            }
        };
        let ty = self.dtype(dtype);
        self.line(depth, &format!("const {ty} {name} = {};", text.text));
        self.bind(value, Text::atom(name));
    }

    fn bind(&mut self, value: Value, text: Text) {
        self.texts.insert(value, text);
    }

    /// `buffer[offset]`.
    fn place(&mut self, address: Address) -> String {
        let base = match address.storage {
            Storage::Param(slot) => {
                self.used.params.insert(slot);
                &self.params[slot]
            }
            Storage::Register(number) => {
                self.used.registers.insert(number);
                &self.registers[number]
            }
        };
        format!("{base}[{}]", self.texts[address.offset].text)
    }

    fn constant(&mut self, constant: Const, dtype: DType) -> Text {
        match constant {
            Const::Bool(value) => {
                self.used.bool = true;
                Text::atom(value.to_string())
            }
            Const::Int(value) => Text::int(value, dtype),
            Const::F16(bits) | Const::BF16(bits) if self.dialect.is_bits(dtype) => {
                Text::atom(format!("0x{bits:04x}"))
            }
            Const::F16(_) | Const::BF16(_) => {
                let wide = Const::float(DType::F32, constant.as_float().unwrap_or_default());
                let wide = wide.unwrap_or(Const::F32(0));
                self.constant(wide, DType::F32).cast(self.dialect.name_of(dtype))
            }
            Const::F32(_) | Const::F64(_) if constant.is_nan() => {
                let suffix = if dtype == DType::F64 { "ULL" } else { "U" };
                let helper = Helper::FromBits(dtype);
                self.used.helpers.insert(helper);
                Text::atom(format!("{constant}{suffix}")).call(&helper.name())
            }
            Const::F32(_) | Const::F64(_) => Text::float(constant),
        }
    }

    /// `op` on `args`, with a result of `dtype`.
    fn arithmetic(&mut self, op: Op, args: &[Value], exact: bool, dtype: DType) -> Text {
        let operand = self.program.values[args[0]];
        // The last argument of WHERE has the type of the result; its condition has another.
        let operand = if op == Op::Where { dtype } else { operand };
        let alu = Alu {
            dialect: self.dialect,
            args: args.iter().map(|&arg| self.texts[arg].clone()).collect(),
            operand,
            result: dtype,
            exact,
        };
        let Some(text) = alu.apply(op) else {
            self.error(EmitErrorKind::Op { op, dtype: operand });
            return Text::atom("0");
        };
        self.used.comparison |= alu.compares_integers(op);
        if let Some(helper) = alu.helper(op) {
            self.used.helpers.insert(helper);
            self.used.helpers.extend(helper.needs());
        }
        text
    }
}
