//! What can be wrong with a kernel, its arguments or a run.

use std::fmt;

use jit::JitError;
use lower::LowerError;
use text::EmitError;
use thiserror::Error as ThisError;
use uop::{BuildErrors, DType, Id, VerifyErrors};

/// Why a device does not compile a kernel. In errors, nodes are those of the graph that was given;
/// in messages, they have the names of its canonical text, as the kernel prints.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum CompileError {
    /// The sink belongs to another graph.
    #[error("expected the sink to be a node of the graph, found number {sink} of {nodes} nodes")]
    NoSink {
        /// Its number.
        sink: usize,
        /// How many nodes the graph has.
        nodes: usize,
    },
    /// The graph breaks rules of the verifier.
    #[error("{message}")]
    Verify {
        /// The violations.
        errors: VerifyErrors,
        /// The message.
        message: String,
    },
    /// The kernel is refused: an access out of bounds, a race, or something not supported.
    #[error("{message}")]
    Lower {
        /// The reason.
        error: Box<LowerError>,
        /// The message.
        message: String,
    },
    /// The interpreter cannot run it, whatever the arguments.
    #[error("{message}")]
    Interp {
        /// The reason.
        error: Box<interp::Error>,
        /// The message.
        message: String,
    },
    /// There is no machine code for it.
    #[error("{message}")]
    Jit {
        /// The reason.
        error: Box<JitError>,
        /// The node that has none, if it is a single one.
        node: Option<Id>,
        /// The message.
        message: String,
    },
    /// There is no source text for it.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The length of an axis is an expression of too many steps.
    #[error("the length of an axis is too long an expression; make it a variable of its own")]
    Size,
}

/// Why a launch did not run, or not to its end: everything that is wrong with its arguments, or the
/// one thing that came up in the run.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub struct LaunchError {
    /// The name of the kernel.
    pub kernel: String,
    /// What is wrong; at least one.
    pub errors: Vec<LaunchErrorKind>,
}

impl fmt::Display for LaunchError {
    /// One error per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}kernel `{}`: {error}", self.kernel)?;
        }
        Ok(())
    }
}

/// One thing that is wrong with a launch.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum LaunchErrorKind {
    /// The device only writes source.
    #[error(
        "device {device} runs nothing; export the source (`Compiled::source`), build it with clang or hipcc, and launch it where the GPU is"
    )]
    SourceOnly {
        /// The device.
        device: &'static str,
    },
    /// Too few or too many buffers.
    #[error("expected {} ({}), found {found}", counted(names.len()), quoted(names))]
    BufferCount {
        /// The names of the parameters, by slot.
        names: Vec<String>,
        /// How many buffers were given.
        found: usize,
    },
    /// A variable has no value.
    #[error("variable `{name}` has no value; give one from {lo} to {hi}")]
    MissingVariable {
        /// Its name.
        name: String,
        /// Its least value.
        lo: i64,
        /// Its greatest value.
        hi: i64,
    },
    /// The value of a variable is outside its bounds.
    #[error("expected variable `{name}` from {lo} to {hi}, found {found}")]
    VariableBounds {
        /// Its name.
        name: String,
        /// Its least value.
        lo: i64,
        /// Its greatest value.
        hi: i64,
        /// The value given.
        found: i64,
    },
    /// A variable that the kernel does not have, or one that is given twice.
    #[error("{}, found {}`{name}`", variables(known), if known.contains(name) { "more than one value of " } else { "" })]
    UnknownVariable {
        /// Its name.
        name: String,
        /// Those that the kernel has.
        known: Vec<String>,
    },
    /// The number of threads is 0.
    #[error("expected at least 1 thread, found 0")]
    ZeroThreads,
    /// A buffer does not fit its parameter.
    #[error("argument {slot} `{name}`: {kind}")]
    Argument {
        /// Its slot.
        slot: usize,
        /// The name of the parameter.
        name: String,
        /// What is wrong.
        kind: ArgumentError,
    },
    /// The system gives no more threads.
    #[error("expected {threads} threads, found that the system has no more: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system says.
        reason: String,
    },
    /// The oracle found a fault in the kernel, or in what these arguments make it do.
    #[error("{message}")]
    Interp {
        /// The fault; its nodes are those of the graph that was compiled.
        error: interp::Error,
        /// The message; its nodes have the names of the canonical text.
        message: String,
    },
}

/// Why a buffer does not fit its parameter.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum ArgumentError {
    /// Another dtype.
    #[error("expected {expected}, found {found}")]
    DType {
        /// That of the parameter.
        expected: DType,
        /// That of the buffer.
        found: DType,
    },
    /// The length of an axis cannot be worked out with the variables of this launch.
    #[error("the length of an axis leaves 128 bits on its way; make the variables smaller")]
    Overflow,
    /// Another number of elements.
    #[error("expected {expected} elements, for shape {shape:?}, found {found}")]
    Length {
        /// That of the parameter.
        expected: u64,
        /// The shape of the parameter.
        shape: Vec<u64>,
        /// That of the buffer.
        found: usize,
    },
    /// As many elements, but other axes.
    #[error("expected shape {expected:?}, found {found:?}")]
    Shape {
        /// That of the parameter.
        expected: Vec<u64>,
        /// That of the buffer.
        found: Vec<usize>,
    },
    /// The shape that the buffer was given is not one of its memory.
    #[error("expected a shape of its {len} elements, found {shape:?}")]
    WrongShape {
        /// The number of elements.
        len: usize,
        /// The shape.
        shape: Vec<usize>,
    },
    /// The kernel writes it.
    #[error("expected a mutable buffer, found a read-only one; make it from a `&mut`")]
    ReadOnly,
    /// The elements are not aligned.
    #[error("expected an address that is a multiple of {expected}, found {found:#x}")]
    Alignment {
        /// The size of an element, in bytes.
        expected: usize,
        /// The address.
        found: usize,
    },
    /// It has no memory ([`Buffer::absent`](crate::Buffer::absent)), and the device runs the kernel.
    #[error("expected a buffer with memory, found an absent one; only device null takes it")]
    Absent,
    /// The kernel writes this buffer or the other one, and they share memory.
    #[error("expected memory apart from argument {other} `{name}`, found that they overlap")]
    Overlap {
        /// The slot of the other.
        other: usize,
        /// The name of the other.
        name: String,
    },
}

/// Why a kernel did not run on a group of devices.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum ShardError {
    /// There are no devices.
    #[error("expected at least 1 device, found none")]
    NoDevices,
    /// The kernel does the same on every device.
    #[error(
        "the kernel has no variable `_device_num`; run it on one device, or build it for shards"
    )]
    NoVariable,
    /// Some part of the work would not be done, or has no device.
    #[error("expected one device for each `_device_num` from {lo} to {hi}, found {found} devices")]
    Devices {
        /// The least number.
        lo: i64,
        /// The greatest number.
        hi: i64,
        /// How many devices there are.
        found: usize,
    },
    /// All devices would write one argument.
    #[error("argument {slot} `{name}`: every device writes it, so it cannot be shared; split it")]
    Shared {
        /// Its slot.
        slot: usize,
        /// The name of the parameter.
        name: String,
    },
    /// The kernel writes one of two arguments, and they share memory.
    #[error("arguments {slot} and {other}: expected memory apart, found that they overlap")]
    Overlap {
        /// The slot of the first.
        slot: usize,
        /// The slot of the second.
        other: usize,
    },
    /// The system gives no thread for one of the devices. The others have run.
    #[error("device {device}: expected a thread, found that the system has no more: {reason}")]
    Threads {
        /// Which device, from 0.
        device: usize,
        /// What the system says.
        reason: String,
    },
    /// The parts of an argument are not the whole.
    #[error(
        "argument {slot} `{name}`: expected {parts} parts of {part} elements, found {whole} elements in all"
    )]
    Split {
        /// Its slot.
        slot: usize,
        /// The name of the parameter.
        name: String,
        /// The number of parts.
        parts: usize,
        /// The elements of each, as the parameter has.
        part: usize,
        /// The elements of the argument.
        whole: usize,
    },
    /// It could not be compiled for one of the devices.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The launch on one of the devices was refused or failed.
    #[error("device {device}: {error}")]
    Launch {
        /// Which device, from 0.
        device: usize,
        /// Why.
        error: LaunchError,
    },
}

/// Why a custom kernel did not run to its end.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// It could not be built.
    #[error(transparent)]
    Build(#[from] BuildErrors),
    /// It could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// It could not be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

fn variables(known: &[String]) -> String {
    match known {
        [] => "the kernel has no variables".to_string(),
        known => format!("expected each of the variables {} once", quoted(known)),
    }
}

fn counted(buffers: usize) -> String {
    let plural = if buffers == 1 { "" } else { "s" };
    format!("{buffers} buffer{plural}")
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
