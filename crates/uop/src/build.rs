//! The handle API: kernels written with operators.
//!
//! A [`Kernel`] is the arena in which one kernel is written; a [`Val`] is a `Copy` handle to one of
//! its nodes. Methods only build: [`Val::sink`] verifies and reports everything at once, with the
//! file and line of the call that made each faulty node. What cannot be built at all (a constant
//! that does not fit its dtype) is reported there too; a placeholder stands for it until then.
//!
//! ```
//! use uop::{AxisType, DType, Kernel};
//!
//! // y[i] = a * x[i] + y[i]; x and y are f32[n].
//! let k = Kernel::new();
//! let n = 1000;
//! let y = k.param_mut("y", DType::F32, [n]);
//! let x = k.param("x", DType::F32, [n]);
//! let i = k.range(n, AxisType::Global);
//! let sum = x.at(i).load() * 2.0 + y.at(i).load();
//! let kernel = y.at(i).store(sum).end([i]).sink("saxpy")?;
//! println!("{kernel}");
//! # Ok::<(), uop::BuildErrors>(())
//! ```

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops;
use std::panic::Location;

use thiserror::Error;

use crate::custom::{AtomicOp, Custom, CustomArg, atomic};
use crate::declare::Declaration;
use crate::dtype::{Const, DType};
use crate::graph::{Access, Arg, Axis, AxisType, Graph, Id, Node, Param, Variable};
use crate::op::Op;
use crate::verify::{Phase, VerifyError, lines, verify};

/// A finished kernel: a graph in canonical form and its SINK.
#[derive(Clone, Debug)]
pub struct KernelGraph {
    /// The nodes; only what the SINK depends on, in canonical order.
    pub graph: Graph,
    /// The SINK.
    pub sink: Id,
    /// By id, the call that built the node, if one did.
    places: Vec<Option<&'static Location<'static>>>,
}

impl KernelGraph {
    /// A kernel that was not written with handles: read from text, say. It need not be legal, but
    /// `sink` must be of `graph` for it to be printed.
    pub fn new(graph: Graph, sink: Id) -> KernelGraph {
        KernelGraph { graph, sink, places: Vec::new() }
    }

    /// The call that built `n`, for messages.
    pub fn place(&self, n: Id) -> Option<&'static Location<'static>> {
        self.places.get(n.index()).copied().flatten()
    }

    /// A message about the node `n`: the call that built it, and the nodes by the names that the
    /// kernel prints.
    pub fn message(&self, n: Id, message: &str) -> String {
        let message = crate::print::localize(&self.graph, self.sink, message);
        match self.place(n) {
            Some(place) => format!("{place}: {message}"),
            None => message,
        }
    }
}

impl fmt::Display for KernelGraph {
    /// The canonical text form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::print::print(&self.graph, self.sink))
    }
}

/// The arena in which one kernel is written.
#[derive(Debug, Default)]
pub struct Kernel {
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    graph: Graph,
    errors: Vec<BuildError>,
    /// Where each node was first built.
    places: HashMap<Id, &'static Location<'static>>,
    params: u32,
    buffers: u32,
    customs: u32,
    axes: u32,
}

impl Inner {
    /// The arguments that a kernel would not take, as `sink` does not need them.
    fn unused(&self, sink: Id) -> impl Iterator<Item = BuildError> {
        let used: HashSet<Id> = self.graph.reachable(sink).into_iter().collect();
        let unused = move |n: &Id| !used.contains(n);
        (0..self.graph.len()).map(|i| self.graph.nth(i)).filter(unused).filter_map(|n| {
            let (op, name) = match &self.graph[n].arg {
                Arg::Param(param) => (Op::Param, param.name.clone()),
                Arg::Variable(variable) => (Op::Variable, variable.name.clone()),
                _ => return None,
            };
            let kind = BuildErrorKind::Unused { op, name };
            Some(BuildError { place: self.places[&n], node: Some(n), kind })
        })
    }
}

impl Kernel {
    /// An empty kernel.
    pub fn new() -> Kernel {
        Kernel::default()
    }

    /// The next argument, which the kernel only reads: `dtype[shape…]`.
    #[track_caller]
    pub fn param<'k>(&'k self, name: &str, dtype: DType, shape: impl Indices<'k>) -> Val<'k> {
        self.add_param(name, dtype, shape, false)
    }

    /// The next argument, which the kernel may write: `dtype[shape…]`.
    #[track_caller]
    pub fn param_mut<'k>(&'k self, name: &str, dtype: DType, shape: impl Indices<'k>) -> Val<'k> {
        self.add_param(name, dtype, shape, true)
    }

    #[track_caller]
    fn add_param<'k>(
        &'k self,
        name: &str,
        dtype: DType,
        shape: impl Indices<'k>,
        mutable: bool,
    ) -> Val<'k> {
        let shape = shape.to_indices(self);
        let slot = next(&mut self.inner.borrow_mut().params);
        let param = Arg::Param(Box::new(Param { slot, name: name.into(), mutable }));
        self.node(Op::Param, dtype, &shape, param)
    }

    /// Storage of one work-item, `dtype[shape…]`, undefined until it is stored to.
    #[track_caller]
    pub fn reg<'k>(&'k self, dtype: DType, shape: impl Indices<'k>) -> Val<'k> {
        let shape = shape.to_indices(self);
        let number = next(&mut self.inner.borrow_mut().buffers);
        self.node(Op::Buffer, dtype, &shape, Arg::Buffer(number))
    }

    /// An integer of `lo..=hi` that each launch states by `name`: a length, the number of a shard.
    #[track_caller]
    pub fn variable(&self, name: &str, lo: i64, hi: i64) -> Val<'_> {
        let variable = Variable { name: name.into(), lo, hi };
        self.node(Op::Variable, DType::Index, &[], Arg::Variable(Box::new(variable)))
    }

    /// A loop variable `0..bound`, its axis numbered in order of calls.
    #[track_caller]
    pub fn range<'k>(&'k self, bound: impl Operand<'k>, kind: AxisType) -> Val<'k> {
        let number = self.inner.borrow().axes;
        self.range_at(number, bound, kind)
    }

    /// A loop variable `0..bound` with an axis number of its own.
    #[track_caller]
    pub fn range_at<'k>(&'k self, axis: u32, bound: impl Operand<'k>, kind: AxisType) -> Val<'k> {
        {
            let mut inner = self.inner.borrow_mut();
            inner.axes = inner.axes.max(axis.saturating_add(1));
        }
        let bound = bound.to_val(self, DType::Index);
        self.node(Op::Range, DType::Index, &[bound], Arg::Range(Axis { number: axis, kind }))
    }

    /// The `index` constant `value`.
    #[track_caller]
    pub fn int(&self, value: i64) -> Val<'_> {
        value.to_val(self, DType::Index)
    }

    /// The constant `value` of `dtype`.
    #[track_caller]
    pub fn constant<'k>(&'k self, dtype: DType, value: impl Operand<'k>) -> Val<'k> {
        value.to_val(self, dtype)
    }

    /// The operation `custom`, built in or a [`Declaration`], on `args`, as its contract says; one
    /// more is a gate.
    #[track_caller]
    pub fn custom<'k>(
        &'k self,
        custom: impl Into<Custom>,
        args: impl IntoIterator<Item = Val<'k>>,
    ) -> Val<'k> {
        let (custom, args): (Custom, Vec<Val<'k>>) = (custom.into(), args.into_iter().collect());
        let result = custom.contract().result;
        // Only what changes memory counts twice if it is done twice.
        let changes = custom.effect().changes();
        let number = if changes { next(&mut self.inner.borrow_mut().customs) } else { 0 };
        let access = Access::default();
        self.node(Op::Custom, result, &args, Arg::Custom { custom, number, access })
    }

    /// The unordered union of effects.
    #[track_caller]
    pub fn group<'k>(&'k self, effects: impl IntoIterator<Item = Val<'k>>) -> Val<'k> {
        let effects: Vec<Val<'k>> = effects.into_iter().collect();
        self.node(Op::Group, DType::Void, &effects, Arg::None)
    }

    #[track_caller]
    fn node<'k>(&'k self, op: Op, dtype: DType, src: &[Val<'k>], arg: Arg) -> Val<'k> {
        if src.iter().any(|val| !std::ptr::eq(val.kernel, self)) {
            return self.fail(dtype, BuildErrorKind::OtherKernel { op });
        }
        self.add(Node::new(op, dtype, src.iter().map(|val| val.id)).with_arg(arg))
    }

    #[track_caller]
    fn add(&self, node: Node) -> Val<'_> {
        let mut inner = self.inner.borrow_mut();
        let id = inner.graph.intern(node);
        inner.places.entry(id).or_insert(Location::caller());
        Val { kernel: self, id }
    }

    #[track_caller]
    fn literal(&self, dtype: DType, value: Option<Const>, text: impl fmt::Display) -> Val<'_> {
        match value {
            Some(value) => self.node(Op::Const, dtype, &[], Arg::Const(value)),
            None => self.fail(dtype, BuildErrorKind::Literal { value: text.to_string(), dtype }),
        }
    }

    /// Reports what cannot be built; returns a placeholder of `dtype`, which nobody verifies.
    #[track_caller]
    fn fail(&self, dtype: DType, kind: BuildErrorKind) -> Val<'_> {
        let error = BuildError { place: Location::caller(), node: None, kind };
        self.inner.borrow_mut().errors.push(error);
        self.add(Node::new(Op::Const, dtype, []))
    }
}

impl Declaration {
    /// What it is in UOps: `build` gets a handle for each argument, an address or a value, and
    /// returns the result or the effect.
    #[must_use]
    pub fn body<F>(mut self, build: F) -> Declaration
    where
        F: for<'k> FnOnce(&'k Kernel, &[Val<'k>]) -> Val<'k>,
    {
        let k = Kernel::new();
        let argument = |(number, arg): (u32, &CustomArg)| {
            let argument = Arg::Argument { number, pointer: arg.is_pointer() };
            k.node(Op::Argument, arg.dtype(), &[], argument)
        };
        let args: Vec<Val<'_>> = (0..).zip(&self.contract.args).map(argument).collect();
        let root = build(&k, &args);
        if !std::ptr::eq(root.kernel, &k) {
            k.fail(root.dtype(), BuildErrorKind::OtherKernel { op: Op::Custom });
        }
        let inner = k.inner.borrow();
        self.fault = inner.errors.first().map(|error| error.to_string().into());
        self.body = self.fault.is_none().then(|| inner.graph.body(root.id));
        self
    }
}

/// Counts up, from 0.
fn next(counter: &mut u32) -> u32 {
    *counter += 1;
    *counter - 1
}

/// A handle to a node of a [`Kernel`]: a buffer, an address, a value or an effect.
#[derive(Clone, Copy)]
pub struct Val<'k> {
    kernel: &'k Kernel,
    id: Id,
}

impl fmt::Debug for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Val({})", self.id)
    }
}

impl<'k> Val<'k> {
    /// The kernel that this belongs to.
    pub fn kernel(self) -> &'k Kernel {
        self.kernel
    }

    /// The node; a placeholder if it could not be built.
    pub fn id(self) -> Id {
        self.id
    }

    /// The dtype of the value, or of the element for buffers and addresses.
    pub fn dtype(self) -> DType {
        self.kernel.inner.borrow().graph[self.id].dtype
    }

    /// The lengths of the axes of a buffer or view; `None` for what has no constant shape.
    pub fn shape(self) -> Option<Vec<i64>> {
        let inner = self.kernel.inner.borrow();
        let dims = inner.graph.shape(self.id)?;
        dims.iter().map(|&d| inner.graph.as_int(d).and_then(|n| i64::try_from(n).ok())).collect()
    }

    /// The node `op` of this and `rest`.
    #[track_caller]
    fn with(self, op: Op, dtype: DType, rest: impl Indices<'k>) -> Val<'k> {
        let mut src = vec![self];
        src.extend(rest.to_indices(self.kernel));
        self.kernel.node(op, dtype, &src, Arg::None)
    }

    /// This buffer seen with other axis lengths of the same product, in row-major order.
    #[track_caller]
    pub fn reshape(self, shape: impl Indices<'k>) -> Val<'k> {
        self.with(Op::Reshape, self.dtype(), shape)
    }

    /// The lengths of the axes of a buffer or view, as values; none for what has no shape.
    pub fn lengths(self) -> Vec<Val<'k>> {
        let inner = self.kernel.inner.borrow();
        let dims = inner.graph.shape(self.id).unwrap_or_default();
        dims.iter().map(|&d| Val { kernel: self.kernel, id: d }).collect()
    }

    /// This buffer seen with one axis; itself if it has one.
    #[track_caller]
    pub fn flatten(self) -> Val<'k> {
        let lengths = self.lengths();
        let numel = self.shape().and_then(|shape| shape.into_iter().try_fold(1, i64::checked_mul));
        match (lengths.as_slice(), numel) {
            ([_], _) => self,
            (_, Some(numel)) => self.reshape(numel),
            ([], None) => self.reshape(0),
            ([first, rest @ ..], None) => {
                let mut numel = *first;
                for &length in rest {
                    numel = numel * length;
                }
                self.reshape(numel)
            }
        }
    }

    /// The address of one element of this buffer: one index per axis.
    #[track_caller]
    pub fn at(self, indices: impl Indices<'k>) -> Val<'k> {
        self.with(Op::Index, self.dtype(), indices)
    }

    /// The element at this address.
    #[track_caller]
    pub fn load(self) -> Val<'k> {
        self.access(Op::Load, self.dtype(), &[self])
    }

    /// The element at this address where `gate` holds; elsewhere 0, and no access.
    #[track_caller]
    pub fn load_if(self, gate: Val<'k>) -> Val<'k> {
        self.access(Op::Load, self.dtype(), &[self, gate])
    }

    /// Writes `value` at this address.
    #[track_caller]
    pub fn store(self, value: impl Operand<'k>) -> Val<'k> {
        let value = self.beside(value);
        self.access(Op::Store, DType::Void, &[self, value])
    }

    /// Writes `value` at this address where `gate` holds.
    #[track_caller]
    pub fn store_if(self, gate: Val<'k>, value: impl Operand<'k>) -> Val<'k> {
        let value = self.beside(value);
        self.access(Op::Store, DType::Void, &[self, value, gate])
    }

    /// Adds `value` to the element at this address, atomically; the old value is not used.
    #[track_caller]
    pub fn atomic_add(self, value: impl Operand<'k>) -> Val<'k> {
        self.atomic(AtomicOp::Add, value)
    }

    /// Adds `value` to the element at this address, atomically, where `gate` holds.
    #[track_caller]
    pub fn atomic_add_if(self, gate: Val<'k>, value: impl Operand<'k>) -> Val<'k> {
        let value = self.beside(value);
        self.kernel.custom(atomic::add(self.dtype()), [self, value, gate])
    }

    /// Does `op` with `value` to the element at this address, atomically. (For a gate, and for a
    /// compare-and-exchange without its result, see [`Kernel::custom`] and [`atomic`].)
    #[track_caller]
    pub fn atomic(self, op: AtomicOp, value: impl Operand<'k>) -> Val<'k> {
        let value = self.beside(value);
        self.kernel.custom(atomic::of(op, self.dtype()), [self, value])
    }

    /// [`Val::atomic`] whose value is the old element.
    #[track_caller]
    pub fn fetch_atomic(self, op: AtomicOp, value: impl Operand<'k>) -> Val<'k> {
        let value = self.beside(value);
        self.kernel.custom(atomic::of(op, self.dtype()).fetch(), [self, value])
    }

    /// The element at this address, which becomes `desired`, atomically, if its bits are those of
    /// `expected`.
    #[track_caller]
    pub fn fetch_cas(self, expected: impl Operand<'k>, desired: impl Operand<'k>) -> Val<'k> {
        let values = [self, self.beside(expected), self.beside(desired)];
        self.kernel.custom(atomic::of(AtomicOp::Cas, self.dtype()).fetch(), values)
    }

    /// Waives the race check of this STORE or CUSTOM: the author vouches that it never meets another
    /// instance's access. Visible in every dump, checked by the interpreter.
    #[track_caller]
    #[must_use]
    pub fn assume_disjoint(self) -> Val<'k> {
        let mut node = self.kernel.inner.borrow().graph[self.id].clone();
        if let Arg::Access(access) | Arg::Custom { access, .. } = &mut node.arg {
            access.assume_disjoint = true;
        }
        self.kernel.add(node)
    }

    /// This value, address or buffer, whose users come after `deps`: an effect, or a range that
    /// puts them inside its loop.
    #[track_caller]
    pub fn after(self, deps: impl Indices<'k>) -> Val<'k> {
        self.with(Op::After, self.dtype(), deps)
    }

    /// This effect for every point of `ranges`, outermost first.
    #[track_caller]
    pub fn end(self, ranges: impl Indices<'k>) -> Val<'k> {
        self.with(Op::End, DType::Void, ranges)
    }

    /// The whole kernel, verified.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, with the file and line of the call that built each part;
    /// with nothing else, the parameters and variables that it does not use.
    #[track_caller]
    pub fn sink(self, name: &str) -> Result<KernelGraph, BuildErrors> {
        let sink = self.kernel.node(Op::Sink, DType::Void, &[self], Arg::Sink(name.into()));
        let inner = self.kernel.inner.borrow();
        let mut errors = inner.errors.clone();
        if errors.is_empty() {
            errors.extend(inner.unused(sink.id));
        }
        if !errors.is_empty() {
            return Err(BuildErrors { errors });
        }
        if let Err(errors) = verify(&inner.graph, sink.id, Phase::Built) {
            let errors = errors.errors.into_iter().map(|error| BuildError {
                place: inner.places.get(&error.node).copied().unwrap_or(Location::caller()),
                node: Some(error.node),
                kind: BuildErrorKind::Verify(error),
            });
            return Err(BuildErrors { errors: errors.collect() });
        }
        let (graph, sink) = inner.graph.canonical(sink.id);
        let place = |n: usize| inner.places.get(&graph.origin(graph.nth(n))).copied();
        let places = (0..graph.len()).map(place).collect();
        Ok(KernelGraph { graph, sink, places })
    }

    /// `self` converted to `dtype`; itself if it has that type.
    #[track_caller]
    pub fn cast(self, dtype: DType) -> Val<'k> {
        if self.dtype() == dtype {
            return self;
        }
        self.kernel.node(Op::Cast, dtype, &[self], Arg::None)
    }

    /// `self < other ? other : self`.
    #[track_caller]
    pub fn max(self, other: impl Operand<'k>) -> Val<'k> {
        self.binary(Op::Max, other)
    }

    /// `self < other ? self : other`.
    #[track_caller]
    pub fn min(self, other: impl Operand<'k>) -> Val<'k> {
        self.binary(Op::Min, other)
    }

    /// `self` moved into `lo..=hi`.
    #[track_caller]
    pub fn clip(self, lo: impl Operand<'k>, hi: impl Operand<'k>) -> Val<'k> {
        self.max(lo).min(hi)
    }

    /// `self < other`.
    #[track_caller]
    pub fn lt(self, other: impl Operand<'k>) -> Val<'k> {
        self.binary(Op::CmpLt, other)
    }

    /// `self > other`.
    #[track_caller]
    pub fn gt(self, other: impl Operand<'k>) -> Val<'k> {
        let other = self.beside(other);
        other.binary(Op::CmpLt, self)
    }

    /// `self <= other`.
    #[track_caller]
    pub fn le(self, other: impl Operand<'k>) -> Val<'k> {
        let other = self.beside(other);
        other.ge(self)
    }

    /// `self >= other`.
    #[track_caller]
    pub fn ge(self, other: impl Operand<'k>) -> Val<'k> {
        let other = self.beside(other);
        if self.dtype().is_float() {
            // With a NaN both are false; `not (self < other)` would be true.
            return other.lt(self) | self.eq(other);
        }
        self.lt(other).eq(false)
    }

    /// `self == other`.
    #[track_caller]
    pub fn eq(self, other: impl Operand<'k>) -> Val<'k> {
        self.binary(Op::CmpEq, other)
    }

    /// `self != other`.
    #[track_caller]
    pub fn ne(self, other: impl Operand<'k>) -> Val<'k> {
        self.binary(Op::CmpNe, other)
    }

    /// `a` where this boolean holds, else `b`; a literal takes the type of the other arm.
    #[track_caller]
    pub fn where_(self, a: impl Operand<'k>, b: impl Operand<'k>) -> Val<'k> {
        let dtype = a.dtype().or(b.dtype()).unwrap_or(a.default_dtype());
        let (a, b) = (a.to_val(self.kernel, dtype), b.to_val(self.kernel, dtype));
        self.kernel.node(Op::Where, a.dtype(), &[self, a, b], Arg::None)
    }

    /// `other` as an operand beside this: a literal takes this dtype.
    #[track_caller]
    fn beside(self, other: impl Operand<'k>) -> Val<'k> {
        other.to_val(self.kernel, self.dtype())
    }

    #[track_caller]
    fn binary(self, op: Op, other: impl Operand<'k>) -> Val<'k> {
        let other = self.beside(other);
        let dtype = op.result().dtype(DType::Void, |_| self.dtype());
        self.kernel.node(op, dtype, &[self, other], Arg::None)
    }

    #[track_caller]
    fn access(self, op: Op, dtype: DType, src: &[Val<'k>]) -> Val<'k> {
        self.kernel.node(op, dtype, src, Arg::Access(Access::default()))
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:expr) => {
        impl<'k, T: Operand<'k>> ops::$trait<T> for Val<'k> {
            type Output = Val<'k>;

            #[track_caller]
            fn $method(self, other: T) -> Val<'k> {
                self.binary($op, other)
            }
        }
    };
}

operator!(Add, add, Op::Add);
operator!(Sub, sub, Op::Sub);
operator!(Mul, mul, Op::Mul);
operator!(BitAnd, bitand, Op::And);
operator!(BitOr, bitor, Op::Or);

impl<'k> ops::Neg for Val<'k> {
    type Output = Val<'k>;

    #[track_caller]
    fn neg(self) -> Val<'k> {
        self.kernel.node(Op::Neg, self.dtype(), &[self], Arg::None)
    }
}

/// What stands beside a [`Val`] in an expression: another, or a literal, which becomes a constant
/// of the other's dtype.
pub trait Operand<'k>: Copy {
    /// The dtype, if it has one of its own.
    fn dtype(&self) -> Option<DType> {
        None
    }

    /// The dtype of a literal where nothing else says one.
    fn default_dtype(&self) -> DType {
        DType::Index
    }

    /// The handle; a literal as a constant of `dtype`.
    fn to_val(self, kernel: &'k Kernel, dtype: DType) -> Val<'k>;
}

impl<'k> Operand<'k> for Val<'k> {
    fn dtype(&self) -> Option<DType> {
        Some(Val::dtype(*self))
    }

    fn to_val(self, _: &'k Kernel, _: DType) -> Val<'k> {
        self
    }
}

macro_rules! literals {
    ($const:path, $wide:ty, $default:ident: $($type:ty)*) => { $(
        impl<'k> Operand<'k> for $type {
            fn default_dtype(&self) -> DType {
                DType::$default
            }

            #[track_caller]
            fn to_val(self, kernel: &'k Kernel, dtype: DType) -> Val<'k> {
                let value = $const(dtype, self as $wide).filter(|value| {
                    let infinite = value.as_float().is_some_and(f64::is_infinite);
                    !(infinite && (self as f64).is_finite())
                });
                kernel.literal(dtype, value, format_args!("{self:?}"))
            }
        }
    )* };
}

literals!(Const::int, i128, Index: i32 i64 u32 u64 usize);
literals!(Const::float, f64, F32: f32 f64);

impl<'k> Operand<'k> for bool {
    fn dtype(&self) -> Option<DType> {
        Some(DType::Bool)
    }

    #[track_caller]
    fn to_val(self, kernel: &'k Kernel, dtype: DType) -> Val<'k> {
        kernel.literal(dtype, (dtype == DType::Bool).then_some(Const::Bool(self)), self)
    }
}

/// Indices, axis lengths, ranges or dependencies: one [`Operand`], or several. Literals are `index`
/// constants.
pub trait Indices<'k> {
    /// The handles.
    fn to_indices(self, kernel: &'k Kernel) -> Vec<Val<'k>>;
}

impl<'k, T: Operand<'k>> Indices<'k> for T {
    #[track_caller]
    fn to_indices(self, kernel: &'k Kernel) -> Vec<Val<'k>> {
        vec![self.to_val(kernel, DType::Index)]
    }
}

impl<'k, T: Operand<'k>, const N: usize> Indices<'k> for [T; N] {
    #[track_caller]
    fn to_indices(self, kernel: &'k Kernel) -> Vec<Val<'k>> {
        self.as_slice().to_indices(kernel)
    }
}

impl<'k, T: Operand<'k>> Indices<'k> for &[T] {
    #[track_caller]
    fn to_indices(self, kernel: &'k Kernel) -> Vec<Val<'k>> {
        // A closure would hide the caller's line.
        let mut vals = Vec::with_capacity(self.len());
        for item in self {
            vals.push(item.to_val(kernel, DType::Index));
        }
        vals
    }
}

/// Everything that is wrong with a kernel.
#[derive(Clone, Debug, Error)]
#[error("{}", lines(.errors))]
pub struct BuildErrors {
    /// In the order of the graph.
    pub errors: Vec<BuildError>,
}

/// One thing that is wrong with a kernel, and the line that built it.
#[derive(Clone, Debug, Error)]
pub struct BuildError {
    /// The call that built it.
    pub place: &'static Location<'static>,
    /// The faulty node, if it could be built.
    pub node: Option<Id>,
    /// What is wrong.
    pub kind: BuildErrorKind,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(node) = self.node {
            write!(f, "{node}: ")?;
        }
        write!(f, "{}", self.kind)
    }
}

/// What can be wrong with a kernel.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// A literal is no value of the dtype of what it stands beside.
    #[error("{value} is no value of {dtype}; use a literal of that type, or cast")]
    Literal {
        /// As written.
        value: String,
        /// What was asked for.
        dtype: DType,
    },
    /// Handles of two kernels in one node.
    #[error("{op} mixes handles of two kernels; build a kernel from one `Kernel`")]
    OtherKernel {
        /// The op that was asked for.
        op: Op,
    },
    /// A kernel takes what it uses: a launch could not state this.
    #[error("the kernel does not use the {op} `{name}`; leave it out")]
    Unused {
        /// PARAM or VARIABLE.
        op: Op,
        /// Its name.
        name: Box<str>,
    },
    /// The graph breaks a rule of the verifier.
    #[error("{}", .0.message)]
    Verify(VerifyError),
}
