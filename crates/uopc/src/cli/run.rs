//! `uopc run`: a kernel on arrays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use interp::Data;
use runtime::{
    Buffer, CompileError, Device, LaunchErrorKind, LaunchOptions, Launched, ProgramParam,
};

use super::files::Output;
use super::source::{self, Source};
use super::{Failure, npy, print, shown};

#[derive(Args)]
#[command(
    after_help = "Arrays are .npy files of the parameter's dtype and shape; bf16 is there as u16, its \
                  bits. A mutable parameter without --arg starts as zeros; a read-only one without \
                  --arg is an error.\n\n\
                  Examples:\n  \
                  uopc run k.uop --arg x=x.npy --arg y=y.npy --out y=sum.npy\n  \
                  uopc run k.uop --arg x=x.npy --threads 2 --time\n  \
                  uopc run k.uop --arg x=x.npy --var n=1000 --out y=y.npy"
)]
pub(crate) struct Run {
    /// The kernel; - is standard input
    file: PathBuf,
    /// The array that a parameter starts as
    #[arg(long = "arg", value_name = "NAME=IN.npy", value_parser = assignment)]
    args: Vec<(String, PathBuf)>,
    /// Where to write a mutable parameter after the run
    #[arg(long = "out", value_name = "NAME=OUT.npy", value_parser = assignment)]
    outs: Vec<(String, PathBuf)>,
    /// The value of a variable of the kernel
    #[arg(long = "var", value_name = "NAME=INT", value_parser = variable)]
    variables: Vec<(String, i64)>,
    #[arg(long, help = devices(), default_value = "cpu", value_parser = Device::from_name)]
    device: Device,
    /// The number of threads; by default one for each core
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Print how long compiling and running took, or on null what running would do
    #[arg(long)]
    time: bool,
}

fn devices() -> String {
    let about = |device: Device| format!("{} ({})", device.name(), device.about());
    let devices: Vec<String> = Device::all().map(about).collect();
    format!("Where to run: {}", devices.join(", "))
}

fn assignment(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.into(), path.into()))
        }
        _ => Err("expected NAME=FILE".into()),
    }
}

fn variable(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=INT")?;
    let value = value.parse().map_err(|_| format!("expected an integer, found `{value}`"))?;
    Ok((name.into(), value))
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("expected at least 1".into()),
        Ok(threads) => Ok(threads),
        Err(_) => Err("expected a number of threads".into()),
    }
}

impl Run {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let source = source::load_verified(&self.file)?;
        let compiled = self.device.compile(&source.kernel()).map_err(|error| match error {
            CompileError::Lower { error, .. } => source.at(error.node, &error.kind.to_string()),
            CompileError::Jit { error, node: Some(n), .. } => source.at(n, &error.kind.to_string()),
            error => error.into(),
        })?;
        let (device, params) = (self.device.name(), compiled.params());
        if compiled.source().is_some() {
            let file = shown(&self.file);
            return Err(Failure::new(format!(
                "device {device} runs nothing; `uopc emit {file} --target hip` writes its source"
            )));
        }
        if !compiled.runs() && !self.outs.is_empty() {
            return Err(Failure::new(format!(
                "device {device} runs nothing; there is nothing to write for --out"
            )));
        }
        let variables: Vec<(&str, i64)> =
            self.variables.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let shapes = compiled.shapes(&variables).map_err(|error| {
            let messages: Vec<String> = error.errors.iter().map(in_options).collect();
            Failure::several(messages.into_iter())
        })?;
        let mut arrays = if compiled.runs() {
            self.inputs(&source, params, &shapes)?
        } else {
            self.check_inputs(&source, params, &shapes)?;
            Vec::new()
        };
        let outputs = self.outputs(&source, params)?;

        let mut buffers: Vec<Buffer<'_>> = if compiled.runs() {
            arrays.iter_mut().zip(&shapes).map(buffer).collect()
        } else {
            params.iter().zip(&shapes).map(absent).collect::<Result<_, Failure>>()?
        };
        let options = LaunchOptions { threads: self.threads, variables: &variables };
        let launched = compiled.launch(&mut buffers, &options).map_err(|error| {
            match error.errors.as_slice() {
                [LaunchErrorKind::Interp { error, .. }] => {
                    source.at(error.node, &error.kind.to_string())
                }
                [kind @ LaunchErrorKind::Threads { .. }] => {
                    Failure::new(format!("{kind}; --threads 1 needs no other"))
                }
                _ => error.into(),
            }
        })?;
        drop(buffers);
        for (slot, output) in outputs {
            npy::write(output, &arrays[slot], &shapes[slot])?;
        }
        if self.time {
            print(&format!(
                "compile {:9.3} ms  graph in hand to callable\n{}\n",
                compiled.compile_time().as_secs_f64() * 1e3,
                if compiled.runs() { run_line(&launched) } else { count_line(&launched) },
            ))?;
        }
        Ok(())
    }

    /// The arrays to start from, by slot. What is not given is zeros, if it is mutable.
    fn inputs(
        &self,
        source: &Source,
        params: &[ProgramParam],
        shapes: &[Vec<u64>],
    ) -> Result<Vec<Data>, Failure> {
        let paths = by_slot("--arg", &self.args, source, params)?;
        let mut arrays = Vec::with_capacity(params.len());
        for (slot, (param, shape)) in params.iter().zip(shapes).enumerate() {
            let len = elements(param, shape)?;
            let data = Data::zeros(param.dtype, len);
            let mut data = data.ok_or_else(|| too_large(param, len as u64))?;
            if let Some(path) = paths.get(&slot) {
                npy::read(path, &mut data, shape)?;
            } else if !param.mutable {
                let name = &param.name;
                return Err(Failure::new(format!(
                    "{}: parameter `{name}` is read-only and has no array; give --arg {name}=FILE.npy",
                    source.name()
                )));
            } else {
                touch(&mut data);
            }
            arrays.push(data);
        }
        Ok(arrays)
    }

    /// Checks the arrays that are given for a kernel that does not run.
    fn check_inputs(
        &self,
        source: &Source,
        params: &[ProgramParam],
        shapes: &[Vec<u64>],
    ) -> Result<(), Failure> {
        let paths = by_slot("--arg", &self.args, source, params)?;
        paths
            .iter()
            .try_for_each(|(&slot, path)| npy::check(path, params[slot].dtype, &shapes[slot]))
    }

    /// The files to write, by slot; none is touched yet.
    fn outputs(
        &self,
        source: &Source,
        params: &[ProgramParam],
    ) -> Result<Vec<(usize, Output)>, Failure> {
        let paths = by_slot("--out", &self.outs, source, params)?;
        let mut outputs: Vec<(usize, Output)> = Vec::with_capacity(paths.len());
        for (slot, path) in paths {
            let name = &params[slot].name;
            let fail = |what: String| Err(Failure::new(format!("--out {name}: {what}")));
            if !params[slot].mutable {
                return fail(format!(
                    "parameter `{name}` is read-only; the kernel does not change it"
                ));
            }
            let output = Output::create(path, &self.file)?;
            if let Some((other, _)) = outputs.iter().find(|(_, other)| other.is_same(&output)) {
                let other = &params[*other].name;
                return fail(format!("`{other}` is written to {} already", shown(path)));
            }
            outputs.push((slot, output));
        }
        Ok(outputs)
    }
}

/// The paths of `--arg` or `--out`, by the slot of the parameter.
fn by_slot<'a>(
    option: &str,
    assignments: &'a [(String, PathBuf)],
    source: &Source,
    params: &[ProgramParam],
) -> Result<BTreeMap<usize, &'a Path>, Failure> {
    let mut paths = BTreeMap::new();
    for (name, path) in assignments {
        let found = params.iter().position(|param| param.name == *name);
        let fail = |what: &str| Err(Failure::new(format!("{option} {}: {what}", shown(name))));
        let Some(slot) = found else {
            if source.declares(name) {
                return fail(&format!("`{name}` is declared but the kernel does not use it"));
            }
            let known: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
            let (known, name) = (known.join(", "), shown(name));
            return fail(&format!(
                "expected one of the kernel's parameters {known}, found `{name}`"
            ));
        };
        if paths.insert(slot, path.as_path()).is_some() {
            return fail("given twice");
        }
    }
    Ok(paths)
}

fn run_line(launched: &Launched) -> String {
    let plural = if launched.threads == 1 { "" } else { "s" };
    let time = launched.time.as_secs_f64() * 1e3;
    format!("run     {time:9.3} ms  {} thread{plural}", launched.threads)
}

fn count_line(launched: &Launched) -> String {
    match launched.cost {
        Some(cost) => format!(
            "counted {} bytes in parameters, {} operations (float arithmetic, additions of atomics)",
            cost.bytes, cost.operations
        ),
        None => "counted nothing: it depends on data, or is too much to count".into(),
    }
}

/// What is wrong with a variable, in terms of the options.
fn in_options(error: &LaunchErrorKind) -> String {
    match error {
        LaunchErrorKind::MissingVariable { name, lo, hi } => {
            format!("variable `{name}` has no value; give --var {name}=INT, from {lo} to {hi}")
        }
        error => format!("--var: {error}"),
    }
}

/// The number of elements of a parameter.
fn elements(param: &ProgramParam, shape: &[u64]) -> Result<usize, Failure> {
    let len = shape.iter().product();
    usize::try_from(len).map_err(|_| too_large(param, len))
}

fn too_large(param: &ProgramParam, len: u64) -> Failure {
    let name = &param.name;
    Failure::new(format!("parameter `{name}` has {len} elements, too many for this machine"))
}

/// Makes the system hand over the memory of an array of zeros now, so that what `--time` prints is
/// the kernel's time and not that of the first access to each page.
fn touch(data: &mut Data) {
    // A byte in each page of the smallest size there is.
    data.bytes_mut().iter_mut().step_by(4096).for_each(|x| *std::hint::black_box(x) = 0);
}

fn buffer<'a>((data, shape): (&'a mut Data, &Vec<u64>)) -> Buffer<'a> {
    Buffer::from(data).with_shape(&lengths(shape))
}

/// For a device that runs nothing.
fn absent((param, shape): (&ProgramParam, &Vec<u64>)) -> Result<Buffer<'static>, Failure> {
    let len = elements(param, shape)?;
    Ok(Buffer::absent(param.dtype, len, param.mutable).with_shape(&lengths(shape)))
}

/// A shape whose number of elements is a usize.
fn lengths(shape: &[u64]) -> Vec<usize> {
    shape.iter().map(|&n| n as usize).collect()
}
