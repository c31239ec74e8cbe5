//! The oracle: runs a UOp graph as built, slow and plain, and checks everything.
//!
//! docs/ir.md (S6) says how; this crate is the executable form of the whole page. It shares with
//! `lower` the op table, the regions and the order of accesses, and nothing else.
//!
//! A run goes through these modules, each relying on the one before:
//!
//! - `normalize` puts constants in the place of VARIABLEs;
//! - `normalize` puts the bodies of declared operations in their place;
//! - `check` refuses what no rule gives a meaning to; what it lets pass has sources of the right
//!   kind and dtype;
//! - `normalize` applies `where-gates-load` and `unique-ranges`; afterwards every range has one
//!   binder;
//! - `plan` lays the graph out for evaluation: regions, loop levels, lanes, storage;
//! - `machine` evaluates it, with `shadow` checking every access that could conflict.
//!
//! Reported and never repaired: out of bounds, race, undefined read, overflow of `index`, a false
//! `assume_disjoint`. No graph makes it panic.
#![forbid(unsafe_code)]

mod alu;
mod check;
mod data;
mod error;
mod functions;
mod machine;
mod normalize;
mod plan;
mod shadow;
mod shuffle;

use uop::{Arg, Graph, Id};

pub use alu::{AluError, alu, atomic};
pub use data::{Data, Element};
pub use error::{Error, ErrorKind, Point};
pub use functions::{Argument, Function, Functions};

/// What an access does whose gate is true and whose address is outside its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfBounds {
    /// It is an error.
    #[default]
    Error,
    /// A LOAD gives its alt (default 0), an effect does not happen: what the compiled back ends do
    /// with accesses of which nothing is known (S8). Where the graph claims `inbounds`, it is an
    /// error all the same.
    Guard,
}

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options<'a> {
    /// The value of each VARIABLE, by name. More than the kernel has are no error.
    pub variables: &'a [(&'a str, i64)],
    /// Chooses the order of parallel points.
    pub seed: u64,
    /// How many evaluations to allow: one for a node at one point, one for a turn of a loop.
    pub steps: Option<u64>,
    /// What to do out of bounds.
    pub out_of_bounds: OutOfBounds,
    /// Let a conflict pass that `assume_disjoint` says cannot happen; the values are then stored
    /// one after the other.
    pub trust_waivers: bool,
    /// What declared operations without a body call.
    pub functions: Functions,
}

/// Runs the kernel that ends in `sink` on `params`, one for each slot, in place. More than the
/// kernel uses is no error.
///
/// # Errors
///
/// Whatever is wrong with the graph, the arguments or the run, at the first node where it shows;
/// ids are those of `graph`. What was written before an error stays written.
pub fn run(
    graph: &Graph,
    sink: Id,
    params: &mut [Data],
    options: &Options<'_>,
) -> Result<(), Error> {
    let plan = prepare(graph, sink, options)?;
    machine::Machine::new(&plan, params, options)?.run()
}

/// Finds what is wrong with the kernel that ends in `sink` whatever it is run on: [`run`] with the
/// same options, but for the variables, fails for no other reason before it touches its arguments.
///
/// # Errors
///
/// As [`run`].
pub fn check(graph: &Graph, sink: Id, options: &Options<'_>) -> Result<(), Error> {
    let least = |n| match &graph[n].arg {
        Arg::Variable(variable) => (&*variable.name, variable.lo),
        _ => unreachable!("a variable has a name"),
    };
    let variables = if sink.index() < graph.len() { graph.variables(sink) } else { Vec::new() };
    let variables: Vec<(&str, i64)> = variables.into_iter().map(least).collect();
    prepare(graph, sink, &Options { variables: &variables, ..options.clone() }).map(|_| ())
}

fn prepare(graph: &Graph, sink: Id, options: &Options<'_>) -> Result<plan::Plan, Error> {
    if sink.index() >= graph.len() {
        return Err(ErrorKind::NotASink.at(sink));
    }
    let mut kernel = normalize::Kernel::new(graph, sink);
    kernel.bind_variables(options.variables)?;
    check::check(&kernel)?;
    kernel.where_gates_load();
    kernel.unique_ranges();
    let plan = plan::Plan::new(kernel.finish())?;
    plan.functions(&options.functions)?;
    Ok(plan)
}
