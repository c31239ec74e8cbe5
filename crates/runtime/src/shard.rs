//! One kernel on several devices at the same time, each with its part of the work.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use uop::KernelGraph;

use crate::buffer::Buffer;
use crate::check::overlaps;
use crate::compiled::{Compiled, LaunchOptions, Launched};
use crate::device::Device;
use crate::error::ShardError;
use crate::pool::default_threads;

/// The variable that says which of the devices a launch is for, from 0.
pub const DEVICE_NUM: &str = "_device_num";

/// An argument of [`shard`].
#[derive(Debug)]
pub enum Sharded<'a> {
    /// Read by every device. The kernel does not write it.
    Shared(Buffer<'a>),
    /// Cut along its first axis: device k gets the k-th part, of the size that the parameter has.
    Split(Buffer<'a>),
}

/// Runs `kernel` on all of `devices` at once, and returns when all are done: what each launch did, in
/// the order of the devices.
///
/// The variable [`DEVICE_NUM`] is the number of the device; `options` has the others. Without a number
/// of threads in `options`, the devices share the cores.
///
/// # Errors
///
/// Everything is checked before anything runs. There must be as many devices as [`DEVICE_NUM`] has
/// values, or one if the kernel has no such variable, so that no part of the work is left out or done
/// twice; the parts of a [`Split`](Sharded::Split) argument must cover it, and are disjoint; a
/// [`Shared`](Sharded::Shared) one is only read, and what is written shares no memory with another
/// argument. Otherwise, what the compilation or the launch on one of the devices says.
pub fn shard(
    devices: &[Device],
    kernel: &KernelGraph,
    args: &mut [Sharded<'_>],
    options: &LaunchOptions<'_>,
) -> Result<Vec<Launched>, ShardError> {
    let compiled = devices.iter().map(|device| device.compile(kernel));
    let compiled = compiled.collect::<Result<Vec<Compiled>, _>>()?;
    let first = compiled.first().ok_or(ShardError::NoDevices)?;
    let variable = first.variables().iter().find(|variable| variable.name == DEVICE_NUM);
    let found = devices.len();
    match variable {
        None if found > 1 => return Err(ShardError::NoVariable),
        Some(variable) if variable.lo != 0 || variable.hi != found as i64 - 1 => {
            let (lo, hi) = (variable.lo, variable.hi);
            return Err(ShardError::Devices { lo, hi, found });
        }
        _ => {}
    }
    let number = |k| variable.map(|_| (DEVICE_NUM, k));
    let numbered: Vec<Vec<(&str, i64)>> = (0..found as i64)
        .map(|k| options.variables.iter().copied().chain(number(k)).collect())
        .collect();
    let threads = options.threads.unwrap_or((default_threads() / found).max(1));
    let options: Vec<LaunchOptions<'_>> = numbered
        .iter()
        .map(|variables| LaunchOptions { variables, threads: Some(threads) })
        .collect();

    // A launch sees its own parts only; one device may not write what another one reads.
    let wholes: Vec<Range<usize>> = args
        .iter()
        .map(|(Sharded::Shared(buffer) | Sharded::Split(buffer))| buffer.addresses())
        .collect();
    if let Some((slot, other)) = overlaps(first.params(), &wholes).next() {
        return Err(ShardError::Overlap { slot, other });
    }
    let at = |device| move |error| ShardError::Launch { device, error };
    let shapes = first.shapes(options[0].variables).map_err(at(0))?;
    let mut buffers: Vec<Vec<Buffer<'_>>> = devices.iter().map(|_| Vec::new()).collect();
    for (slot, arg) in args.iter_mut().enumerate() {
        match (arg, first.params().get(slot).zip(shapes.get(slot))) {
            (Sharded::Shared(_), Some((param, _))) if param.mutable => {
                return Err(ShardError::Shared { slot, name: param.name.clone() });
            }
            // Too many or too few arguments are for the launch to report.
            (Sharded::Shared(buffer), _) | (Sharded::Split(buffer), None) => {
                buffers.iter_mut().for_each(|buffers| buffers.push(buffer.shared()));
            }
            (Sharded::Split(buffer), Some((param, shape))) => {
                let part = shape.iter().product::<u64>() as usize;
                let whole = buffer.len();
                let Some(parts) = buffer.split(found, part) else {
                    let name = param.name.clone();
                    return Err(ShardError::Split { slot, name, parts: found, part, whole });
                };
                // The parts have the shape of the parameter.
                let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
                for (buffers, part) in buffers.iter_mut().zip(parts) {
                    buffers.push(part.with_shape(&shape));
                }
            }
        }
    }
    let mut launches = Vec::with_capacity(found);
    for (device, ((compiled, buffers), options)) in
        compiled.iter().zip(buffers).zip(&options).enumerate()
    {
        let values = compiled.check(&buffers, options).map_err(at(device))?;
        launches.push((compiled, buffers, options, values));
    }
    thread::scope(|scope| {
        let run = |(compiled, mut buffers, options, values): (
            &Compiled,
            Vec<Buffer<'_>>,
            _,
            Vec<i64>,
        )| { compiled.run(&mut buffers, options, &values) };
        let spawned: Vec<_> = launches
            .into_iter()
            .map(|launch| thread::Builder::new().spawn_scoped(scope, move || run(launch)))
            .collect();
        let done: Vec<Result<Launched, ShardError>> = (spawned.into_iter().enumerate())
            .map(|(device, spawned)| {
                let spawned = spawned
                    .map_err(|error| ShardError::Threads { device, reason: error.to_string() })?;
                // What panics is a function of the caller's.
                let done = spawned.join().unwrap_or_else(|payload| resume_unwind(payload));
                done.map_err(at(device))
            })
            .collect();
        done.into_iter().collect()
    })
}
