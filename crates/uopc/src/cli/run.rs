//! `uopc run`: a kernel on arrays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use interp::Data;
use runtime::{Buffer, CompileError, Device, LaunchErrorKind, LaunchOptions, ProgramParam};

use super::files::Output;
use super::source::{self, Source};
use super::{Failure, npy, print};

#[derive(Args)]
#[command(
    after_help = "Arrays are .npy files of the parameter's dtype and shape. A mutable parameter without \
                  --arg starts as zeros; a read-only one without --arg is an error.\n\n\
                  Examples:\n  \
                  uopc run k.uop --arg x=x.npy --arg y=y.npy --out y=sum.npy\n  \
                  uopc run k.uop --arg x=x.npy --threads 2 --time"
)]
pub(crate) struct Run {
    /// The kernel; - is standard input
    file: String,
    /// The array that a parameter starts as
    #[arg(long = "arg", value_name = "NAME=IN.npy", value_parser = assignment)]
    args: Vec<(String, PathBuf)>,
    /// Where to write a mutable parameter after the run
    #[arg(long = "out", value_name = "NAME=OUT.npy", value_parser = assignment)]
    outs: Vec<(String, PathBuf)>,
    /// Where to run: cpu, interp (checks everything, slow), null (compiles only)
    #[arg(long, default_value = "cpu", value_parser = Device::from_name)]
    device: Device,
    /// The number of threads; by default one for each core
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Print how long compiling and running took
    #[arg(long)]
    time: bool,
}

fn assignment(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.into(), path.into()))
        }
        _ => Err("expected NAME=FILE".into()),
    }
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
        let source = source::load_checked(&self.file)?;
        let compiled = self.device.compile(&source.kernel()).map_err(|error| match error {
            CompileError::Lower { error, .. } => source.at(error.node, &error.kind.to_string()),
            error => error.into(),
        })?;
        if compiled.source().is_some() {
            // It runs nothing, whatever the arrays; the launch says what to do instead.
            compiled.launch(&mut [], &LaunchOptions::default())?;
        }
        let params = compiled.params();
        let mut arrays = self.inputs(&source, params)?;
        let outputs = self.outputs(params)?;

        let mut buffers: Vec<Buffer<'_>> = arrays.iter_mut().zip(params).map(buffer).collect();
        let options = LaunchOptions { threads: self.threads };
        let launched = compiled.launch(&mut buffers, &options).map_err(|error| {
            match error.errors.as_slice() {
                [LaunchErrorKind::Interp { error, .. }] => {
                    source.at(error.node, &error.kind.to_string())
                }
                _ => error.into(),
            }
        })?;
        drop(buffers);
        for (slot, output) in outputs {
            npy::write(output, &arrays[slot], &params[slot].shape)?;
        }
        if self.time {
            print(&format!(
                "compile {:9.3} ms  graph in hand to callable\nrun     {:9.3} ms  {} thread{}\n",
                compiled.compile_time().as_secs_f64() * 1e3,
                launched.time.as_secs_f64() * 1e3,
                launched.threads,
                if launched.threads == 1 { "" } else { "s" },
            ))?;
        }
        Ok(())
    }

    /// The arrays to start from, by slot.
    fn inputs(&self, source: &Source, params: &[ProgramParam]) -> Result<Vec<Data>, Failure> {
        let paths = by_slot("--arg", &self.args, params)?;
        let mut arrays = Vec::with_capacity(params.len());
        for (slot, param) in params.iter().enumerate() {
            arrays.push(match paths.get(&slot) {
                Some(path) => npy::read(path, param.dtype, &param.shape)?,
                None if param.mutable => zeros(param)?,
                None => {
                    let name = &param.name;
                    return Err(Failure(format!(
                        "{}: parameter `{name}` is read-only and has no array; give --arg {name}=FILE.npy",
                        source.name()
                    )));
                }
            });
        }
        Ok(arrays)
    }

    /// The files to write, by slot; none is touched yet.
    fn outputs(&self, params: &[ProgramParam]) -> Result<Vec<(usize, Output)>, Failure> {
        let paths = by_slot("--out", &self.outs, params)?;
        let mut outputs: Vec<(usize, Output)> = Vec::with_capacity(paths.len());
        for (slot, path) in paths {
            let name = &params[slot].name;
            if !params[slot].mutable {
                return Err(Failure(format!(
                    "--out {name}: parameter `{name}` is read-only; the kernel does not change it"
                )));
            }
            let output = Output::create(path)?;
            if let Some((other, _)) = outputs.iter().find(|(_, other)| other.is_same(&output)) {
                let (other, path) = (&params[*other].name, path.display());
                return Err(Failure(format!(
                    "--out {name}: `{other}` is written to {path} already"
                )));
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
    params: &[ProgramParam],
) -> Result<BTreeMap<usize, &'a Path>, Failure> {
    let mut paths = BTreeMap::new();
    for (name, path) in assignments {
        let Some(slot) = params.iter().position(|param| param.name == *name) else {
            let known: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
            let known = known.join(", ");
            return Err(Failure(format!(
                "{option} {name}: expected one of the kernel's parameters {known}, found `{name}`"
            )));
        };
        if paths.insert(slot, path.as_path()).is_some() {
            return Err(Failure(format!("{option} {name}: given twice")));
        }
    }
    Ok(paths)
}

fn zeros(param: &ProgramParam) -> Result<Data, Failure> {
    let len = usize::try_from(param.len()).ok();
    len.and_then(|len| Data::zeros(param.dtype, len)).ok_or_else(|| {
        Failure(format!(
            "parameter `{}` has {} elements, too many for this machine",
            param.name,
            param.len()
        ))
    })
}

fn buffer<'a>((data, param): (&'a mut Data, &ProgramParam)) -> Buffer<'a> {
    let buffer = match data {
        Data::Bool(data) => Buffer::from(data),
        Data::I32(data) => Buffer::from(data),
        Data::I64(data) => Buffer::from(data),
        Data::F32(data) => Buffer::from(data),
    };
    let shape: Vec<usize> = param.shape.iter().map(|&n| n as usize).collect();
    buffer.with_shape(&shape)
}
