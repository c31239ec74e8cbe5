//! The command, as a user types it: what works, and what each mistake says.
#![forbid(unsafe_code)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ndarray::{Array1, Array2, ArrayD};
use ndarray_npy::{ReadNpyExt, WriteNpyExt};
use tempfile::TempDir;

/// A folder to work in.
struct Shell {
    dir: TempDir,
}

impl Shell {
    fn new() -> Shell {
        Shell { dir: tempfile::tempdir().expect("there is room for temporary files") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("the folder is writable");
    }

    fn uopc(&self, line: &str) -> Output {
        self.uopc_on(line, "")
    }

    /// Runs `uopc` with the words of `line`, and `input` on standard input.
    fn uopc_on(&self, line: &str, input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_uopc"));
        command.args(line.split_whitespace()).current_dir(self.dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // It need not read it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("the command ends")
    }

    /// What a command that works prints.
    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let out = self.uopc(line);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && stderr.is_empty(), "{line}: {}\n{stderr}", out.status);
        String::from_utf8(out.stdout).expect("text is UTF-8")
    }

    /// Checks that a command fails with this code and says all of `parts` on standard error only.
    #[track_caller]
    fn fails(&self, code: i32, line: &str, parts: &[&str]) {
        let out = self.uopc(line);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{line}: {stderr}");
        assert!(out.stdout.is_empty(), "{line}: {}", String::from_utf8_lossy(&out.stdout));
        for part in parts {
            assert!(stderr.contains(part), "{line}: no `{part}` in\n{stderr}");
        }
        assert!(!stderr.contains("panicked") && !stderr.contains('\x1b'), "{stderr}");
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).expect("the folder is there");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry.expect("it can be listed"))).collect();
        names.sort();
        names
    }
}

fn npy<T: WriteNpyExt>(path: &Path, array: &T) {
    let file = fs::File::create(path).expect("the folder is writable");
    array.write_npy(file).expect("an array can be written");
}

/// A shell with a small kernel and its arrays.
fn small() -> Shell {
    let shell = Shell::new();
    let kernel = shell.ok("new embedding_bwd --tokens 6 --dim 4 --vocab 3");
    shell.write("k.uop", kernel);
    npy(&shell.path("idx.npy"), &Array1::from(vec![0i32, 1, 1, 2, -5, 9]));
    let grad: Array2<f32> = Array2::from_shape_fn((6, 4), |(i, j)| (i * 4 + j) as f32);
    npy(&shell.path("ge.npy"), &grad);
    shell
}

const RUN: &str = "run k.uop --arg idx=idx.npy --arg grad_emb=ge.npy --out grad_weight=gw.npy";

#[test]
fn the_main_job() {
    let shell = Shell::new();
    let kernel = shell.ok("new embedding_bwd --tokens 16384 --dim 256 --vocab 12830");
    shell.write("k.uop", &kernel);
    assert_eq!(shell.ok("check k.uop"), "");
    assert_eq!(shell.ok("fmt k.uop"), kernel);
    let hip = shell.ok("emit k.uop --target hip");
    assert!(hip.contains("Launch exactly 16384 x 1 x 1 blocks of 256 x 1 x 1 work-items"), "{hip}");
    for name in ["*grad_weight", "*__restrict__ grad_emb", "*__restrict__ idx"] {
        assert!(hip.contains(name), "{hip}");
    }
    let c = shell.ok("emit k.uop --target c");
    assert!(c.contains("void embedding_bwd_range("), "{c}");

    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/tokens.npy");
    let file = fs::File::open(&data).expect("the tokens are in examples/data");
    let tokens = Array1::<i32>::read_npy(file).expect("they are int32");
    fs::copy(&data, shell.path("tokens.npy")).expect("the folder is writable");
    let grad = Array2::from_shape_fn((16384, 256), |(i, j)| ((i * 7 + j) % 33) as f32 - 16.0);
    npy(&shell.path("ge.npy"), &grad);
    let line = "run k.uop --arg idx=tokens.npy --arg grad_emb=ge.npy --out grad_weight=gw.npy \
                --threads 2 --time";
    let time = shell.ok(line);
    assert!(time.contains("compile ") && time.contains("2 threads"), "{time}");

    let mut want = Array2::<f32>::zeros((12830, 256));
    for (&token, row) in tokens.iter().zip(grad.rows()) {
        let mut sum = want.row_mut(token as usize);
        sum += &row;
    }
    let file = fs::File::open(shell.path("gw.npy")).expect("it was written");
    assert_eq!(Array2::<f32>::read_npy(file).expect("it is an array"), want);
    assert_eq!(shell.names(), ["ge.npy", "gw.npy", "k.uop", "tokens.npy"]);
}

#[test]
fn every_device_and_target() {
    let shell = small();
    let want = Array2::from_shape_fn((3, 4), |(row, j)| {
        let rows: &[usize] = [&[0, 4][..], &[1, 2], &[3, 5]][row];
        rows.iter().map(|i| (i * 4 + j) as f32).sum::<f32>()
    });
    for device in ["cpu", "interp", "CPU"] {
        shell.ok(&format!("{RUN} --device {device}"));
        let file = fs::File::open(shell.path("gw.npy")).expect("it was written");
        assert_eq!(Array2::<f32>::read_npy(file).expect("it is an array"), want, "{device}");
    }
    let line = "run k.uop --arg idx=idx.npy --device null";
    assert_eq!(shell.ok(line), "");
    let time = shell.ok(&format!("{line} --time"));
    // 6 tokens; for each of 4 columns the gradient, and the sum before and after.
    assert!(time.contains("compile ") && time.contains("counted 312 bytes"), "{time}");
    assert!(time.contains(" 24 operations"), "{time}");
    for (target, part) in [
        ("c", "void embedding_bwd"),
        ("hip", "__global__"),
        ("clif", "atomic_cas"),
        ("program", "program embedding_bwd("),
    ] {
        let text = shell.ok(&format!("emit k.uop --target {target}"));
        assert!(text.contains(part), "{text}");
        assert_eq!(shell.ok(&format!("emit k.uop --target {target} -o out")), "");
        assert_eq!(fs::read_to_string(shell.path("out")).expect("it was written"), text);
    }
    let kernel = fs::read_to_string(shell.path("k.uop")).expect("it was written");
    let out = shell.uopc_on("fmt -", &kernel);
    assert_eq!(String::from_utf8_lossy(&out.stdout), kernel);
    let list = shell.ok("kernels");
    for name in ["zero", "embedding", "embedding_bwd"] {
        assert!(list.contains(name), "{list}");
    }
    for line in ["new zero --len 10", "new embedding --tokens 3 --dim 5 --vocab 7"] {
        let kernel = shell.ok(line);
        assert!(shell.uopc_on("check -", &kernel).status.success(), "{kernel}");
    }
    let help = shell.ok("--help");
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
}

/// The bytes behind the header of an array.
fn elements(path: &Path) -> Vec<u8> {
    let file = fs::read(path).expect("it was written");
    file[10 + usize::from(u16::from_le_bytes([file[8], file[9]]))..].to_vec()
}

#[test]
fn symbolic_tokens_and_shards() {
    let shell = Shell::new();
    let shards = 4;
    // With one token, those of all shards but one add nothing.
    for (dim, vocab, counts) in [(768, 50257, &[65][..]), (5, 51, &[1, 7, 300])] {
        let new = format!("new embedding_bwd --tokens 1..65536 --dim {dim} --vocab {vocab}");
        let new = format!("{new} --idx i64 --grad bf16");
        shell.write("whole.uop", shell.ok(&new));
        let kernel = shell.ok(&format!("{new} --shards {shards}"));
        shell.write("k.uop", &kernel);
        assert_eq!(shell.ok("check k.uop"), "");
        assert_eq!(shell.ok("fmt k.uop"), kernel);
        let hip = shell.ok("emit k.uop --target hip");
        let grid = format!("Launch exactly tokens x {} x 1 blocks", (dim + 255) / 256);
        assert!(hip.contains(&grid) && hip.contains(" *__restrict__ grad_emb"), "{hip}");
        let c = shell.ok("emit k.uop --target c");
        assert!(c.contains("    int64_t _device_num,\n    int64_t tokens)"), "{c}");
        assert!(c.contains("const uint16_t *restrict grad_emb"), "{c}");

        for &n in counts {
            // Every shard gets some, and there are bad ones.
            let idx = Array1::from_shape_fn(n, |i| (i as i64 * 7919) % (vocab + 9) - 4);
            npy(&shell.path("idx.npy"), &idx);
            // bf16 is the upper half of f32; small integers have a zero there.
            let value = |i: usize, j: usize| ((i * 31 + j) % 19) as f32 - 9.0;
            let bits = |i, j| (value(i, j).to_bits() >> 16) as u16;
            npy(
                &shell.path("ge.npy"),
                &Array2::from_shape_fn((n, dim as usize), |(i, j)| bits(i, j)),
            );
            let run = |kernel: &str, more: &str| {
                shell.ok(&format!(
                    "run {kernel} --arg idx=idx.npy --arg grad_emb=ge.npy --var tokens={n} {more} \
                     --out grad_weight=gw.npy"
                ));
                elements(&shell.path("gw.npy"))
            };
            let whole = run("whole.uop", "");
            let mut want = vec![0.0f32; whole.len() / 4];
            for (i, &token) in idx.iter().enumerate() {
                let row = token.clamp(0, vocab - 1) as usize * dim as usize;
                for (j, sum) in want[row..][..dim as usize].iter_mut().enumerate() {
                    *sum += value(i, j);
                }
            }
            assert!(whole == want.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
            let part = |k| run("k.uop", &format!("--var _device_num={k}"));
            let parts: Vec<Vec<u8>> = (0..shards).map(part).collect();
            assert!(parts.iter().all(|part| part.len() == parts[0].len()));
            assert!(parts.concat()[..whole.len()] == whole, "dim {dim}, {n} tokens");
        }
    }
    let file = "run k.uop --device null --var tokens=3";
    let each = "expected each of the variables `_device_num`, `tokens` once, found";
    for (vars, want) in [
        ("", "variable `_device_num` has no value; give --var _device_num=INT, from 0 to 3"),
        ("--var _device_num=4", "--var: expected variable `_device_num` from 0 to 3, found 4"),
        ("--var _device_num=-1", "--var: expected variable `_device_num` from 0 to 3, found -1"),
        ("--var _device_num=0 --var n=1", &format!("--var: {each} `n`")),
        ("--var _device_num=0 --var tokens=3", &format!("--var: {each} more than one value of")),
    ] {
        shell.fails(1, &format!("{file} {vars}"), &[want]);
    }
    let all =
        ["variable `_device_num` has", "variable `tokens` has no value; give --var tokens=INT"];
    shell.fails(1, "run k.uop", &all);
    shell.fails(2, "run k.uop --var tokens", &["expected NAME=INT"]);
    shell.fails(2, "run k.uop --var tokens=1e3", &["expected an integer, found `1e3`"]);
    // An array of another number of tokens than is said.
    npy(&shell.path("idx.npy"), &Array1::from(vec![0i64; 4]));
    let line = "run k.uop --var tokens=3 --var _device_num=0 --arg idx=idx.npy --device null";
    shell.fails(1, line, &["cannot read idx.npy: expected i64 [3], found i64 [4]"]);
}

#[test]
fn tokens_of_several_axes() {
    let shell = Shell::new();
    let new = |tokens: &str| format!("new embedding_bwd --tokens={tokens} --dim 4 --vocab 5");
    for (tokens, parts) in [
        ("8,2048", &["param.f32 [8, 2048, 4] slot 1", "param.i32 [8, 2048] slot 2"][..]),
        ("1..4,128", &["variable 1 to 4 \"tokens_0\"", "param.i32 [%1, 128] slot 2"]),
        ("0..2,0..3", &["variable 0 to 2 \"tokens_0\"", "variable 0 to 3 \"tokens_1\""]),
        ("0", &["param.i32 [0] slot 2"]),
    ] {
        let kernel = shell.ok(&new(tokens));
        assert!(parts.iter().all(|part| kernel.contains(part)), "{kernel}");
        shell.write("k.uop", &kernel);
        assert_eq!(shell.ok("check k.uop"), "");
        assert_eq!(shell.ok("fmt k.uop"), kernel);
    }
    let batch = shell.ok(&new("1..4,128"));
    shell.write("k.uop", batch);
    npy(&shell.path("idx.npy"), &Array2::from_shape_fn((3, 128), |(i, j)| (i + j) as i32 % 7 - 1));
    let grad = ArrayD::from_shape_fn(vec![3, 128, 4], |at| (at[0] + at[1] + at[2]) as f32);
    npy(&shell.path("ge.npy"), &grad);
    let line = "--arg idx=idx.npy --arg grad_emb=ge.npy --out grad_weight=gw.npy";
    shell.ok(&format!("run k.uop --var tokens_0=3 {line}"));
    let batched = elements(&shell.path("gw.npy"));
    assert!(batched.iter().any(|&x| x != 0));
    shell.write("k.uop", shell.ok(&new("384")));
    npy(
        &shell.path("idx.npy"),
        &Array1::from_shape_fn(384, |i| (i / 128 + i % 128) as i32 % 7 - 1),
    );
    npy(&shell.path("ge.npy"), &grad.into_shape_with_order((384, 4)).expect("as many elements"));
    shell.ok(&format!("run k.uop {line}"));
    assert!(elements(&shell.path("gw.npy")) == batched);

    for (tokens, found) in [
        ("1..", "``"),
        ("..4", "``"),
        ("x", "`x`"),
        ("8,,3", "``"),
        ("1..=4", "`=4`"),
        ("1..2..3", "`2..3`"),
        ("1-4", "`1-4`"),
        ("1.5", "`1.5`"),
    ] {
        shell.fails(2, &new(tokens), &[&format!("expected N or LO..HI, {found} is no integer")]);
    }
    // Integers that make no sense are for the kernel to refuse.
    let want = "error: the greatest number of tokens must be at least 4, found 1\n";
    shell.fails(1, &new("4..1"), &[want]);
    shell.fails(1, &new("-1..4"), &["error: tokens must be at least 0, found -1\n"]);
    let line = "new embedding_bwd --dim 4 --vocab 4 --tokens -1..4";
    shell.fails(1, line, &["error: tokens must be at least 0, found -1\n"]);
}

#[test]
fn what_is_not_given_starts_as_zeros_and_what_is_accumulates() {
    let shell = small();
    shell.ok(RUN);
    let file = fs::File::open(shell.path("gw.npy")).expect("it was written");
    let once = ArrayD::<f32>::read_npy(file).expect("it is an array");
    shell.ok(&format!("{RUN} --arg grad_weight=gw.npy"));
    let file = fs::File::open(shell.path("gw.npy")).expect("it was written");
    assert_eq!(ArrayD::<f32>::read_npy(file).expect("it is an array"), once * 2.0);
}

#[test]
fn usage() {
    let shell = small();
    shell.fails(2, "", &["Usage: uopc"]);
    shell.fails(2, "frobnicate", &["unrecognized subcommand"]);
    shell.fails(2, "emit k.uop", &["--target"]);
    shell.fails(2, "emit k.uop --target cuda", &["c, hip, clif, program"]);
    shell.fails(2, "new embedding_bwd --tokens 5 --dim 4", &["--vocab"]);
    shell.fails(2, "run k.uop --arg idx", &["expected NAME=FILE"]);
    shell.fails(2, "run k.uop --threads 0", &["expected at least 1"]);
    let empty = Command::new(env!("CARGO_BIN_EXE_uopc")).args(["check", ""]).output();
    let empty = empty.expect("the command starts");
    assert_eq!(empty.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&empty.stderr).contains("a value is required for '<FILE>'"));
    shell.fails(
        2,
        "run k.uop --device metal",
        &["no device `metal`; devices with atomics are cpu, interp, null, amd"],
    );
}

#[test]
fn kernels_that_are_wrong() {
    let shell = small();
    shell.fails(1, "check none.uop", &["cannot read none.uop: No such file"]);
    shell.fails(
        1,
        "new embedding_bwd --tokens 5 --dim 300 --vocab 9 --strict",
        &["dim 300 is not divisible by the block of 256 columns"],
    );
    shell.fails(1, "new embedding_bwd --tokens 5 --dim 0 --vocab 9", &["dim must be at least 1"]);
    for (line, want) in [
        ("zero --len -1", "error: len must be at least 0, found -1\n"),
        (
            "zero --len 4611686018427387904",
            "error: out of shape [4611686018427387904] is more than 9223372036854775807 bytes\n",
        ),
    ] {
        shell.fails(1, &format!("new {line}"), &[want]);
    }
    shell.fails(1, "check no\u{1b}[31m\u{202e}.uop", &["no\\u{1b}[31m\\u{202e}.uop: No such file"]);
    shell.write("bytes.uop", b"uopc 1\n%0 = \xff");
    shell.fails(1, "check bytes.uop", &["bytes.uop", "byte 12 is not UTF-8"]);
    shell.write("empty.uop", "");
    shell.fails(1, "check empty.uop", &["empty.uop:1:1: expected the version line `uopc 1`"]);
    let kernel = fs::read_to_string(shell.path("k.uop")).expect("it was written");
    shell.write("typo.uop", kernel.replace("= load", "= laod"));
    for command in ["check", "fmt", "emit --target c", "emit --target c -o out", "run"] {
        let parts = ["typo.uop:7:6: unknown op `laod`, did you mean `load`?", "^^^^"];
        shell.fails(1, &format!("{command} typo.uop"), &parts);
    }
    // The text is fine, the kernel is not.
    shell.write("race.uop", kernel.replace("custom atomic_add.f32", "store"));
    for command in ["check", "emit --target hip", "run"] {
        shell.fails(
            1,
            &format!("{command} race.uop"),
            &["race.uop:", "possible race on `grad_weight`"],
        );
    }
    shell.ok("fmt race.uop");
    assert!(!shell.names().contains(&"out".to_string()));
}

#[test]
fn arrays_that_are_wrong() {
    let shell = small();
    let before = shell.names();
    let fails = |line: &str, parts: &[&str]| {
        shell.fails(1, line, parts);
    };
    fails(
        "run k.uop --arg idx=idx.npy",
        &[
            "k.uop: parameter `grad_emb` is read-only and has no array; give --arg grad_emb=FILE.npy",
        ],
    );
    fails(
        &format!("{RUN} --arg x=idx.npy"),
        &["--arg x: expected one of the kernel's parameters grad_weight, grad_emb, idx, found `x`"],
    );
    fails(&format!("{RUN} --arg idx=ge.npy"), &["--arg idx: given twice"]);
    fails(&format!("{RUN} --out idx=o.npy"), &["--out idx: parameter `idx` is read-only"]);
    fails(
        "run k.uop --arg idx=ge.npy --arg grad_emb=ge.npy",
        &["cannot read ge.npy: expected i32 [6], found f32 [6, 4]"],
    );
    npy(&shell.path("short.npy"), &Array1::from(vec![0i32; 5]));
    fails(
        "run k.uop --arg idx=short.npy --arg grad_emb=ge.npy",
        &["cannot read short.npy: expected i32 [6], found i32 [5]"],
    );
    npy(&shell.path("flat.npy"), &Array1::from(vec![0f32; 24]));
    fails(
        "run k.uop --arg idx=idx.npy --arg grad_emb=flat.npy",
        &["cannot read flat.npy: expected f32 [6, 4], found f32 [24]"],
    );
    let whole = fs::read(shell.path("ge.npy")).expect("it was written");
    for (name, bytes) in [
        ("cut.npy", &whole[..whole.len() - 1]),
        ("head.npy", &whole[..20]),
        ("nothing.npy", &[][..]),
        ("text.npy", &b"not an array at all, but long enough to have a header"[..]),
    ] {
        shell.write(name, bytes);
        let line = format!("run k.uop --arg idx=idx.npy --arg grad_emb={name}");
        fails(&line, &[&format!("cannot read {name}: expected f32 [6, 4]; ")]);
        fs::remove_file(shell.path(name)).expect("it was written");
    }
    fails(
        "run k.uop --arg idx=none.npy --arg grad_emb=ge.npy",
        &["cannot read none.npy: No such file"],
    );
    fs::remove_file(shell.path("short.npy")).expect("it was written");
    fs::remove_file(shell.path("flat.npy")).expect("it was written");
    assert_eq!(shell.names(), before, "nothing was written");
}

#[test]
fn outputs_that_cannot_be_written() {
    let shell = small();
    let run = "run k.uop --arg idx=idx.npy --arg grad_emb=ge.npy --out";
    shell.fails(1, &format!("{run} grad_weight=no/gw.npy"), &["cannot write no/gw.npy: No such"]);
    fs::create_dir(shell.path("folder")).expect("the folder is writable");
    shell.fails(1, &format!("{run} grad_weight=folder"), &["cannot write folder: "]);
    shell.fails(1, "emit k.uop --target c -o folder", &["cannot write folder: "]);
    shell.fails(1, "emit k.uop --target c -o new/", &["cannot write new/: No such"]);
    // What was there stays as it was when the run fails.
    shell.write("gw.npy", "precious");
    shell.fails(
        1,
        "run k.uop --arg idx=ge.npy --arg grad_emb=ge.npy --out grad_weight=gw.npy",
        &[],
    );
    assert_eq!(fs::read(shell.path("gw.npy")).expect("it is there"), b"precious");
    assert_eq!(shell.names(), ["folder", "ge.npy", "gw.npy", "idx.npy", "k.uop"]);
    if cfg!(target_os = "linux") {
        // What the message names is the place, not the file that is written beside it.
        let out = shell.uopc(&format!("{run} grad_weight=/proc/gw.npy"));
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(stderr.starts_with("error: cannot write /proc/gw.npy: "), "{stderr}");
        assert!(!stderr.contains(".uopc-"), "{stderr}");
        // A device stays a device.
        shell.ok(&format!("{run} grad_weight=/dev/null"));
        shell.ok("emit k.uop --target c -o /dev/null");
        let full = shell.uopc(&format!("{run} grad_weight=/dev/full"));
        assert_eq!(full.status.code(), Some(1));
    }
}

/// A shell with a kernel that writes 1 to `o` and 2 to `p`, both `i32[8]`, and declares `x`.
fn two() -> Shell {
    let shell = Shell::new();
    let kernel = "uopc 1
%o = param.i32 [8] slot 0 mut \"o\"
%p = param.i32 [8] slot 1 mut \"p\"
%x = param.i32 [8] slot 2 \"x\"
%i = range 8 axis 0 global
%oi = index %o [%i]
%pi = index %p [%i]
%one = const.i32 1
%two = const.i32 2
%s = store %oi, %one
%t = store %pi, %two
%g = group %s, %t
%e = end %g, %i
%k = sink %e \"two\"
";
    shell.write("k.uop", kernel);
    shell
}

#[test]
fn options_that_do_not_fit_the_kernel() {
    let shell = two();
    let unused = "`x` is declared but the kernel does not use it";
    shell.fails(1, "run k.uop --arg x=x.npy", &["--arg x: ", unused]);
    shell.fails(1, "run k.uop --out x=x.npy", &["--out x: ", unused]);
    let known = "expected one of the kernel's parameters o, p, found `y`";
    shell.fails(1, "run k.uop --out y=y.npy", &["--out y: ", known]);
    assert!(shell.ok("--help").contains("an option does not fit the kernel"));
}

#[test]
fn one_file_is_one_output_and_never_the_kernel() {
    let shell = two();
    fs::create_dir(shell.path("d")).expect("the folder is writable");
    for other in ["a.npy", "./a.npy", "d/../a.npy", "d/.././a.npy"] {
        // Neither is there yet; then both are.
        for _ in 0..2 {
            let line = format!("run k.uop --out o=a.npy --out p={other}");
            shell.fails(1, &line, &[&format!("--out p: `o` is written to {other} already")]);
            shell.write("a.npy", "");
        }
        fs::remove_file(shell.path("a.npy")).expect("it was written");
    }
    shell.ok("run k.uop --out o=a.npy --out p=d/a.npy");
    shell.ok("run k.uop --arg o=a.npy --out o=a.npy");

    let kernel = fs::read(shell.path("k.uop")).expect("it was written");
    let want = "k.uop: it would overwrite the kernel";
    shell.fails(1, "run k.uop --out o=d/../k.uop", &["cannot write d/../", want]);
    shell.fails(1, "emit k.uop --target c -o ./k.uop", &["cannot write ./", want]);
    assert_eq!(fs::read(shell.path("k.uop")).expect("it is there"), kernel);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    use std::os::unix::fs::symlink;
    let shell = two();
    for (to, link) in [("a.npy", "link"), ("loop", "loop"), ("none", "dangling"), ("k.uop", "k")] {
        symlink(to, shell.path(link)).expect("the folder is writable");
    }
    shell.write("a.npy", "");
    shell.ok("run k.uop --out o=link");
    assert!(fs::metadata(shell.path("a.npy")).expect("it is there").len() > 0);
    let want = ["cannot write dangling: it is a link to a file that does not exist"];
    shell.fails(1, "run k.uop --out o=dangling", &want);
    shell.fails(1, "run k.uop --out o=loop", &["cannot write loop: Too many levels of symbolic"]);
    shell.fails(1, "run k.uop --out o=k", &["cannot write k: it would overwrite the kernel"]);
    for link in ["link", "loop", "dangling", "k"] {
        assert!(shell.path(link).is_symlink(), "{link}");
    }
    assert_eq!(shell.names(), ["a.npy", "dangling", "k", "k.uop", "link", "loop"]);
}

#[test]
fn arrays_too_large_for_this_machine() {
    let shell = Shell::new();
    let len = i64::MAX / 4;
    let kernel = shell.ok(&format!("new zero --len {len}"));
    shell.write("k.uop", kernel);
    for device in ["cpu", "interp"] {
        let want = format!("parameter `out` has {len} elements, too many for this machine");
        shell.fails(1, &format!("run k.uop --device {device}"), &[&want]);
    }
    let time = shell.ok("run k.uop --device null --time");
    assert!(time.contains(&format!("counted {} bytes", 4 * len)), "{time}");
    // The header of an array as large, and no more: an empty axis, or its elements, are missing.
    let shell = small();
    for shape in ["(1099511627776,)", "(0, 4611686018427387904, 4611686018427387904)"] {
        let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}");
        let len = (header.len() as u16).to_le_bytes();
        let file = [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), b"1234"].concat();
        shell.write("huge.npy", file);
        let want = format!("huge.npy: expected i32 [6], found i32 [{}", &shape[1..4]);
        shell.fails(1, "run k.uop --arg idx=huge.npy --arg grad_emb=ge.npy", &[&want]);
    }
}

#[test]
fn a_parameter_with_a_very_long_name() {
    let shell = two();
    let kernel = fs::read_to_string(shell.path("k.uop")).expect("it was written");
    let long = "o".repeat(70_000);
    shell.write("k.uop", kernel.replace("\"o\"", &format!("\"{long}\"")));
    for target in ["c", "hip", "clif", "program"] {
        let text = shell.ok(&format!("emit k.uop --target {target}"));
        assert!(target == "clif" || text.contains(&long), "{target}");
    }
}

#[test]
fn many_mistakes_are_not_all_printed() {
    let shell = two();
    let kernel = fs::read_to_string(shell.path("k.uop")).expect("it was written");
    let errors = |text: &str| {
        shell.write("many.uop", text);
        let out = shell.uopc("check many.uop");
        assert_eq!(out.status.code(), Some(1));
        let errors = String::from_utf8(out.stderr).expect("text is UTF-8");
        assert!(errors.ends_with("error: … and 80 more\n"), "{errors}");
        assert_eq!(errors.matches("error: many.uop:").count(), 20, "{errors}");
    };
    let wrong: Vec<String> = (0..100).map(|i| format!("%w{i} = frob {i}\n")).collect();
    errors(&(kernel.clone() + &wrong.concat()));
    // Two indexes into one axis, which is for the verifier.
    let wrong = |i: i32| format!("%w{i} = index %o [%i, {i}]\n%s{i} = store %w{i}, %one\n");
    let wrong: String = (0..100).map(wrong).collect();
    let group: String = (0..100).map(|i| format!(", %s{i}")).collect();
    let group = format!("{wrong}%g = group %s, %t{group}");
    errors(&kernel.replace("%g = group %s, %t", &group));
}

#[test]
fn running_on_null_writes_nothing() {
    let shell = small();
    shell.fails(
        1,
        "run k.uop --device null --out grad_weight=gw.npy",
        &["device null runs nothing; there is nothing to write for --out"],
    );
    shell.fails(1, "run k.uop --device null --arg idx=ge.npy", &["expected i32 [6], found f32"]);
}

#[test]
fn running_on_amd_says_what_to_do() {
    let shell = small();
    let want = "device amd runs nothing; `uopc emit k.uop --target hip` writes its source";
    shell.fails(1, &format!("{RUN} --device amd"), &[want]);
    let help = shell.ok("run --help");
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(
        words.join(" ").contains("amd (writes HIP source for AMD GPUs; runs nothing)"),
        "{help}"
    );
    assert!(!shell.names().contains(&"gw.npy".to_string()));
}

#[test]
fn the_interpreter_points_at_the_access() {
    let shell = Shell::new();
    let kernel = "uopc 1
%counts = param.i32 [4] slot 0 mut \"counts\"
%keys = param.i32 [3] slot 1 \"keys\"
%i = range 3 axis 0 global
%ki = index %keys [%i]
%key = load %ki
%row = cast.index %key
%cell = index %counts [%row]
%one = const.i32 1
%add = custom atomic_add.i32 %cell, %one
%end = end %add, %i
%sink = sink %end \"count\"
";
    shell.write("k.uop", kernel);
    npy(&shell.path("keys.npy"), &Array1::from(vec![0i32, 3, 4]));
    shell.ok("run k.uop --arg keys=keys.npy --out counts=c.npy");
    let file = fs::File::open(shell.path("c.npy")).expect("it was written");
    assert_eq!(Array1::<i32>::read_npy(file).expect("it is an array").to_vec(), [1, 0, 0, 1]);
    shell.fails(
        1,
        "run k.uop --arg keys=keys.npy --device interp",
        &["k.uop:10:8: index 4 is out of bounds for axis 0 of length 4, at %i = 2", "^^^^^^"],
    );
}

#[test]
fn the_interpreter_finds_that_disjoint_is_false() {
    let shell = Shell::new();
    let kernel = "uopc 1
%o = param.i32 [8] slot 0 mut \"o\"
%x = param.i32 [8] slot 1 \"x\"
%i = range 8 axis 0 global
%xi = index %x [%i]
%v = load %xi
%row = cast.index %v
%cell = index %o [%row]
%s = store %cell, %v disjoint
%e = end %s, %i
%k = sink %e \"k\"
";
    shell.write("k.uop", kernel);
    npy(&shell.path("x.npy"), &Array1::from(vec![7, 6, 5, 4, 3, 3, 1, 0]));
    let want = "marked `disjoint`, but touches element 3 of %o, at %i = ";
    let way_out = "; if indexes can repeat, use an atomic without `disjoint`";
    shell.fails(
        1,
        "run k.uop --arg x=x.npy --device interp",
        &[want, ", as %s does, at ", way_out],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_machine_without_threads() {
    let shell = Shell::new();
    shell.write("k.uop", shell.ok("new zero --len 1000"));
    let run = |threads: u32| {
        // The stacks of 255 threads, 2 MiB each, do not fit.
        let uopc = env!("CARGO_BIN_EXE_uopc");
        let line = format!("ulimit -v 400000; exec {uopc} run k.uop --threads {threads}");
        let out = Command::new("sh").args(["-c", &line]).current_dir(shell.dir.path()).output();
        let out = out.expect("the shell starts");
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, stderr) = run(256);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.starts_with("error: expected 256 threads, found that the"), "{stderr}");
    assert!(stderr.ends_with("; --threads 1 needs no other\n"), "{stderr}");
    assert_eq!(run(1), (Some(0), String::new()));
}
