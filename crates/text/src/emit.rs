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
use crate::helpers::Helper;
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
    emitter.registers();
    if emitter.errors.is_empty() {
        return Ok(emitter.kernel.file());
    }
    Err(EmitError { kernel: program.name.clone(), target: dialect.name, kinds: emitter.errors })
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
                    if self.decide(*value, block) != Fate::Dead {
                        self.expr(expr, block);
                    }
                }
                Stmt::For { lo, hi, body, .. } => {
                    if has_effect(body) {
                        self.block(body);
                        self.uses([*lo, *hi], block);
                    }
                }
                Stmt::If { cond, body } => {
                    if has_effect(body) {
                        self.block(body);
                        self.uses([*cond], block);
                    }
                }
                Stmt::Store { address, value } => self.uses([address.offset, *value], block),
                Stmt::Atomic { address, values, old, gate, .. } => {
                    old.map(|old| self.decide(old, block));
                    self.uses([address.offset], block);
                    self.uses(values.iter().copied(), block);
                    self.gate(*gate, block);
                }
                Stmt::Call { result, args, gate, .. } => {
                    result.map(|result| self.decide(result, block));
                    for arg in args {
                        match arg {
                            // A template may spell it twice.
                            CallArg::Value(value) => self.uses([*value, *value], block),
                            CallArg::Address(address) => self.uses([address.offset], block),
                        }
                    }
                    self.gate(*gate, block);
                }
            }
        }
    }

    fn expr(&mut self, expr: &Expr, block: u32) {
        match expr {
            Expr::Const(_) | Expr::Launch(_) => {}
            Expr::Alu { op, args, .. } => {
                // Some spell their operands twice.
                let times = if matches!(op, Op::Max | Op::Min) { 2 } else { 1 };
                for _ in 0..times {
                    self.uses(args.iter().copied(), block);
                }
            }
            Expr::Load { address, gate } => {
                self.uses([address.offset], block);
                self.gate(*gate, block);
            }
        }
    }

    /// The fate of `value`, which is defined in `block` and whose users were all seen.
    fn decide(&mut self, value: Value, block: u32) -> Fate {
        let fate = match self.uses.get(value) {
            None => Fate::Dead,
            Some(&(1, user)) if user == block => Fate::Once,
            Some(_) => Fate::Named,
        };
        self.fates.insert(value, fate);
        fate
    }

    fn gate(&mut self, gate: Option<(Value, Value)>, block: u32) {
        if let Some((gate, alternative)) = gate {
            self.uses([gate, alternative], block);
        }
    }

    fn uses(&mut self, values: impl IntoIterator<Item = Value>, block: u32) {
        for value in values {
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
    kernel: Kernel<'a>,
    names: Names,
    registers: Vec<String>,
    /// The variable of the loops at each depth.
    loops: Vec<String>,
    open_loops: usize,
    fates: SecondaryMap<Value, Fate>,
    texts: SecondaryMap<Value, Text>,
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
        let (body, used) = (String::new(), Used::default());
        let mut fates = Fates::default();
        fates.block(&program.body);
        let mut emitter = Emitter {
            program,
            dialect,
            kernel: Kernel { program, dialect, name, params, variables, body, used },
            names,
            registers,
            loops: Vec::new(),
            open_loops: 0,
            fates: fates.fates,
            texts: SecondaryMap::new(),
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

    /// Writes the register buffers that are used, above the statements.
    fn registers(&mut self) {
        let mut text = String::new();
        for &number in &self.kernel.used.registers {
            let register = &self.program.registers[number];
            let (dtype, name) = (self.dialect.name_of(register.dtype), &self.registers[number]);
            // Zeros, so that no compiler warns of reads that it cannot tell to come after a write.
            text += &format!("    {dtype} {name}[{}] = {{0}};\n", register.len.max(1));
            if !self.kernel.used.registers_read.contains(&number) {
                text += &format!("    (void){name};\n");
            }
        }
        self.kernel.body.insert_str(0, &text);
    }

    fn error(&mut self, kind: EmitErrorKind) {
        if !self.errors.contains(&kind) {
            self.errors.push(kind);
        }
    }

    /// The type's name.
    fn dtype(&mut self, dtype: DType) -> &'static str {
        self.kernel.used.bool |= dtype == DType::Bool;
        self.kernel.used.i64 |= matches!(dtype, DType::I64 | DType::U64);
        (self.dialect.types)(dtype).unwrap_or_else(|| {
            self.error(EmitErrorKind::Type { dtype });
            "void"
        })
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.kernel.body += &"    ".repeat(depth);
        self.kernel.body += text;
        self.kernel.body.push('\n');
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
                    let call = self.atomic(*op, *address, values);
                    let call = self.gated(*gate, call);
                    self.outcome(*old, "old", &call, depth);
                }
                Stmt::Call { result, custom, args, gate } => {
                    self.call(*result, &self.program.customs[*custom], args, *gate, depth);
                }
            }
        }
    }

    /// The call that does an atomic and gives the old value.
    fn atomic(&mut self, op: AtomicOp, address: Address, values: &[Value]) -> Text {
        let dtype = self.program.element(address.storage);
        if op.works_on(dtype).is_err() {
            self.error(EmitErrorKind::Atomic { op, dtype });
        }
        let (function, rest) = match (self.dialect.atomic)(op, dtype) {
            Some(builtin) => (builtin, self.dialect.atomic_rest),
            None => (self.help(Helper::Atomic(op, dtype)), ""),
        };
        let mut call = format!("{function}({}", self.pointer(address, Effect::Atomic(op)));
        for &value in values {
            call += &format!(", {}", self.texts[value].text);
        }
        Text::atom(call + rest + ")")
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
                CallArg::Address(address) => self.pointer(*address, custom.contract().effect),
            });
        }
        let Some(text) = template.and_then(|template| fill(template, &texts).ok()) else {
            return self.error(EmitErrorKind::Template { name: custom.name().to_owned() });
        };
        let text = text.trim();
        if result.is_none() {
            let end = if text.ends_with(';') { "" } else { ";" };
            return self.line(depth, &format!("{text}{end}"));
        }
        let text = text.strip_suffix(';').unwrap_or(text);
        let mut open = 0;
        let comma = text.bytes().any(|byte| {
            open += i32::from(b"([{".contains(&byte)) - i32::from(b")]}".contains(&byte));
            open == 0 && byte == b','
        });
        // But for a comma, whatever it is binds no less tightly than this.
        let text = match comma {
            true => Text::atom(format!("({text})")),
            false => Text::new(Prec::Ternary, text.to_owned()),
        };
        let text = self.gated(gate, text);
        self.outcome(result, "v", &text, depth);
    }

    /// `text`, if the gate is true, else the alternative.
    fn gated(&self, gate: Option<(Value, Value)>, text: Text) -> Text {
        let Some((gate, alternative)) = gate else { return text };
        Text::ternary(&self.texts[gate], &text, &self.texts[alternative])
    }

    /// Does what `text` does; what it gives is `value`, if that is asked for and used.
    fn outcome(&mut self, value: Option<Value>, prefix: &str, text: &Text, depth: usize) {
        match value.filter(|&value| self.fates[value] != Fate::Dead) {
            Some(value) => {
                let name = self.names.number(prefix);
                self.local(value, name, text, depth);
            }
            None if text.prec == Prec::Atom => self.line(depth, &format!("{};", text.text)),
            None => self.line(depth, &format!("(void)({});", text.text)),
        }
    }

    /// Writes `value` as a local.
    fn local(&mut self, value: Value, name: String, text: &Text, depth: usize) {
        let dtype = self.dtype(self.program.values[value]);
        self.line(depth, &format!("const {dtype} {name} = {};", text.text));
        self.bind(value, Text::atom(name));
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
                return self.bind(value, text);
            }
            Expr::Launch(index) => {
                self.kernel.used.indices.insert(*index);
                let text = match *index {
                    LaunchIndex::Variable(number) => Some(self.kernel.variables[number].clone()),
                    _ => (self.dialect.index)(*index).map(str::to_owned),
                };
                if text.is_none() {
                    self.error(EmitErrorKind::Index { index: *index });
                }
                let text = Text::atom(text.unwrap_or_default());
                let prefix = match index {
                    LaunchIndex::Begin | LaunchIndex::End | LaunchIndex::Variable(_) => {
                        return self.bind(value, text);
                    }
                    LaunchIndex::Block(dim) => ["bx", "by", "bz"].get(usize::from(*dim)),
                    LaunchIndex::Item(dim) => ["tx", "ty", "tz"].get(usize::from(*dim)),
                };
                // The hardware's indices are unsigned.
                let text = text.cast(self.dialect.name_of(dtype));
                (text, self.names.keep(prefix.unwrap_or(&"")))
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
                let place = Text::atom(self.read(*address));
                let prefix = format!("{}_", self.base(address.storage));
                (self.gated(*gate, place), self.names.number(&prefix))
            }
        };
        self.local(value, name, &text, depth);
    }

    fn bind(&mut self, value: Value, text: Text) {
        self.texts.insert(value, text);
    }

    /// The name of a buffer.
    fn base(&self, storage: Storage) -> &str {
        match storage {
            Storage::Param(slot) => &self.kernel.params[slot],
            Storage::Register(number) => &self.registers[number],
        }
    }

    /// `buffer[offset]`.
    fn place(&mut self, address: Address) -> String {
        match address.storage {
            Storage::Param(slot) => self.kernel.used.params.insert(slot),
            Storage::Register(number) => self.kernel.used.registers.insert(number),
        };
        format!("{}[{}]", self.base(address.storage), self.texts[address.offset].text)
    }

    /// `buffer[offset]`, which is read.
    fn read(&mut self, address: Address) -> String {
        if let Storage::Register(number) = address.storage {
            self.kernel.used.registers_read.insert(number);
        }
        self.place(address)
    }

    /// `&buffer[offset]`, to which something is done.
    fn pointer(&mut self, address: Address, effect: Effect) -> String {
        if let (Storage::Param(slot), Effect::Atomic(op)) = (address.storage, effect) {
            self.kernel.used.atomics.insert((slot, op));
        }
        format!("&{}", self.read(address))
    }

    /// Has `helper` defined; returns its name.
    fn help(&mut self, helper: Helper) -> String {
        self.kernel.used.helpers.insert(helper);
        self.kernel.used.helpers.extend(helper.needs());
        helper.name()
    }

    fn constant(&mut self, constant: Const, dtype: DType) -> Text {
        match constant {
            Const::Bool(value) => {
                self.kernel.used.bool = true;
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
                let from_bits = self.help(Helper::FromBits(dtype));
                Text::atom(format!("{constant}{suffix}")).call(&from_bits)
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
        self.kernel.used.comparison |= alu.compares_integers(op);
        if let Some(helper) = alu.helper(op) {
            self.help(helper);
        }
        text
    }
}
