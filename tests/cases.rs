//! The cases under tests/cases: kernels in the text form, with what they are tested for and what is
//! expected in comments.
//!
//! Before the kernel stand directives:
//!
//! - `; test: WORDS`: `fmt` (the text is canonical), `run` (interpreter, JIT and C agree bit for
//!   bit), `hip` (its text is below, and compiles for every chip), `c`, `clif`, `program` (the text
//!   is below), `error` (what `uopc check` says is below);
//! - `; arg NAME = VALUES`: what a parameter starts as; a mutable one without is zeros;
//! - `; var NAME = INTEGER`: the value of a variable;
//! - `; guard`: accesses of which nothing is known are skipped when out of bounds, not errors.
//!
//! Behind the kernel stand the expectations, `; == NAME` and their lines. `UOPC_BLESS=1` rewrites
//! them.
#![forbid(unsafe_code)]

mod support;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use interp::{Data, OutOfBounds};
use support::{cc, hip, tools};
use uopc::uop::Const;
use uopc::{Buffer, DType, Device, KernelGraph, LaunchOptions};

#[test]
fn every_case_is_as_it_says() {
    let bless = std::env::var_os("UOPC_BLESS").is_some_and(|value| value == "1");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    assert!(paths.len() > 3, "the cases are in {}", root.display());
    let mut failures = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a case is text");
        let case = Case::new(&path, &text);
        let found = case.check();
        if found == text {
            continue;
        }
        if bless {
            fs::write(&path, found).expect("a case can be written");
        } else {
            failures.push(format!("{}: expected\n{text}\nfound\n{found}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}\nUOPC_BLESS=1 rewrites them", failures.join("\n\n"));
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut entries: Vec<PathBuf> =
        entries.map(|entry| entry.expect("it can be listed").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|ext| ext == "uop") {
            paths.push(path);
        }
    }
}

struct Case<'a> {
    path: &'a Path,
    /// Everything but the expectations.
    kernel: &'a str,
    tests: Vec<&'a str>,
    args: Vec<(&'a str, &'a str)>,
    variables: Vec<(&'a str, i64)>,
    guard: bool,
}

impl<'a> Case<'a> {
    fn new(path: &'a Path, text: &'a str) -> Case<'a> {
        let end = text.find("\n; == ").map_or(text.len(), |at| at + 1);
        let kernel = &text[..end];
        let mut case = Case {
            path,
            kernel,
            tests: Vec::new(),
            args: Vec::new(),
            variables: Vec::new(),
            guard: false,
        };
        for line in kernel.lines().filter_map(|line| line.strip_prefix("; ")) {
            if let Some(tests) = line.strip_prefix("test: ") {
                case.tests = tests.split_whitespace().collect();
            } else if let Some(arg) = line.strip_prefix("arg ") {
                let (name, values) = arg.split_once(" = ").expect("NAME = VALUES");
                case.args.push((name.trim(), values));
            } else if let Some(variable) = line.strip_prefix("var ") {
                let (name, value) = variable.split_once(" = ").expect("NAME = INTEGER");
                case.variables.push((name.trim(), value.trim().parse().expect("an integer")));
            } else if line == "guard" {
                case.guard = true;
            }
        }
        assert!(!case.tests.is_empty(), "{}: no `; test:` line", path.display());
        case
    }

    /// Runs everything that is asked for and returns the whole text as it should be.
    fn check(&self) -> String {
        let mut out = self.kernel.trim_end().to_string();
        out.push('\n');
        let mut section = |name: &str, text: &str| {
            write!(out, "\n; == {name}\n").expect("a string takes any text");
            for line in text.lines() {
                let line = format!("; {line}");
                writeln!(out, "{}", line.trim_end()).expect("a string takes any text");
            }
        };
        for &test in &self.tests {
            match test {
                "fmt" => {
                    let plain: String = self
                        .kernel
                        .lines()
                        .filter(|line| !line.starts_with(';') && !line.is_empty())
                        .map(|line| format!("{line}\n"))
                        .collect();
                    assert_eq!(self.uopc(&["fmt"]), plain, "{} is canonical", self.path.display());
                }
                "run" => section("run", &self.run()),
                "c" | "clif" | "program" => section(test, &self.uopc(&["emit", "--target", test])),
                "hip" => {
                    let source = self.uopc(&["emit", "--target", "hip"]);
                    if let Some(compiler) = tools::hip_compiler(&self.name()) {
                        for chip in hip::CHIPS {
                            hip::compile(compiler, &source, chip, &[]);
                        }
                    }
                    section("hip", &source);
                }
                "error" => section("error", &self.uopc_fails()),
                _ => panic!("{}: no test `{test}`", self.path.display()),
            }
        }
        out
    }

    fn name(&self) -> String {
        let name = self.path.file_name().expect("a case has a name");
        name.to_string_lossy().into_owned()
    }

    /// What the command prints for this file.
    fn uopc(&self, args: &[&str]) -> String {
        let out = self.command(args);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{}: {args:?}: {stderr}", self.path.display());
        String::from_utf8(out.stdout).expect("text is UTF-8")
    }

    /// What `uopc check` says is wrong.
    fn uopc_fails(&self) -> String {
        let out = self.command(&["check"]);
        assert_eq!(out.status.code(), Some(1), "{} is wrong", self.path.display());
        assert!(out.stdout.is_empty());
        String::from_utf8(out.stderr).expect("text is UTF-8")
    }

    fn command(&self, args: &[&str]) -> std::process::Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_uopc"));
        command.args(args).arg(self.name());
        command.current_dir(self.path.parent().expect("a case is in a folder"));
        command.output().expect("the command runs")
    }

    /// Runs the kernel on everything that is here and returns what the interpreter computed.
    fn run(&self) -> String {
        let parsed = uopc::parse(self.kernel).unwrap_or_else(|error| panic!("{error}"));
        let kernel = KernelGraph::new(parsed.graph, parsed.sink);
        let compiled = Device::cpu().compile(&kernel).unwrap_or_else(|error| panic!("{error}"));
        let params = compiled.params();
        let variables = &self.variables[..];
        let shapes = compiled.shapes(variables).unwrap_or_else(|error| panic!("{error}"));
        let inputs: Vec<Data> = params
            .iter()
            .zip(shapes)
            .map(|(param, shape)| {
                let len = shape.iter().product::<u64>();
                let mut data = Data::zeros(param.dtype, len as usize).expect("it is stored");
                let values = self.args.iter().find(|(name, _)| *name == param.name);
                if let Some((_, values)) = values {
                    fill(&mut data, values);
                }
                data
            })
            .collect();

        let mut want = inputs.clone();
        let out_of_bounds = if self.guard { OutOfBounds::Guard } else { OutOfBounds::Error };
        for seed in 0..4 {
            let mut results = inputs.clone();
            let options = interp::Options { variables, seed, out_of_bounds, ..Default::default() };
            interp::run(&kernel.graph, kernel.sink, &mut results, &options)
                .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()));
            if seed > 0 {
                self.compare(&format!("interpreter, seed {seed}"), &want, &results);
            }
            want = results;
        }
        for threads in [1, 2, 7] {
            let mut results = inputs.clone();
            let mut buffers: Vec<Buffer<'_>> = results.iter_mut().map(Buffer::from).collect();
            let options = LaunchOptions { threads: Some(threads), variables };
            compiled.launch(&mut buffers, &options).unwrap_or_else(|error| panic!("{error}"));
            drop(buffers);
            self.compare(&format!("JIT, {threads} threads"), &want, &results);
        }
        let program = lower::lower(&kernel.graph, kernel.sink, &text::C.caps).expect("it compiled");
        let bytes: Vec<Vec<u8>> = inputs.iter().map(|data| data.bytes().to_vec()).collect();
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
        let values: Vec<i64> =
            program.variables.iter().map(|v| value(&v.name).expect("it has a value").1).collect();
        for build in cc::builds(&self.name(), &program) {
            for mode in cc::MODES {
                let out = build.run(mode, &values, &bytes);
                let mut results = inputs.clone();
                for (result, bytes) in results.iter_mut().zip(&out) {
                    result.bytes_mut().copy_from_slice(bytes);
                }
                self.compare(&format!("C, {}, {mode}", build.label), &want, &results);
            }
        }
        let mutable = params.iter().zip(&want).filter(|(param, _)| param.mutable);
        mutable.map(|(param, data)| format!("{} = {}\n", param.name, list(data))).collect()
    }

    fn compare(&self, who: &str, want: &[Data], found: &[Data]) {
        for (want, found) in want.iter().zip(found) {
            assert!(
                want.agrees(found),
                "{}: {who} disagrees with the interpreter: {} instead of {}",
                self.path.display(),
                list(found),
                list(want)
            );
        }
    }
}

/// Fills `data` with `values`, from the first on again when they run out.
fn fill(data: &mut Data, values: &str) {
    let words: Vec<&str> = values.split_whitespace().collect();
    for i in 0..data.len() {
        let word = words[i % words.len()];
        data.set(i, read(word, data.dtype()));
    }
}

fn read(word: &str, dtype: DType) -> Const {
    let value = match dtype {
        DType::Bool => word.parse().ok().map(Const::Bool),
        _ if dtype.is_int() => word.parse().ok().map(Const::Int),
        _ => word.parse().ok().and_then(|value| Const::float(dtype, value)),
    };
    value.unwrap_or_else(|| panic!("`{word}` is no value of the parameter's type"))
}

fn list(data: &Data) -> String {
    let words: Vec<String> = (0..data.len()).map(|i| data.get(i).to_string()).collect();
    words.join(" ")
}
