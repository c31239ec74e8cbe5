//! The README shows what the code does.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use uopc::{AxisType, DType, Device, Kernel, KernelGraph, Val};

/// The kernel of the README, with the update that `update` makes.
fn scatter(update: impl for<'k> Fn(Val<'k>, Val<'k>) -> Val<'k>) -> KernelGraph {
    let (tokens, dim, vocab) = (16384, 256, 12830);
    let k = Kernel::new();
    let grad_weight = k.param_mut("grad_weight", DType::F32, [vocab, dim]);
    let grad_emb = k.param("grad_emb", DType::F32, [tokens, dim]);
    let idx = k.param("idx", DType::I32, tokens);
    let i = k.range(tokens, AxisType::Global);
    let j = k.range(dim, AxisType::Local);
    let token = idx.at(i).load().cast(DType::Index).clip(0, vocab - 1);
    let update = update(grad_weight.at([token, j]), grad_emb.at([i, j]).load());
    update.end([i, j]).sink("scatter").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_readme_shows_what_the_code_writes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(path).expect("the README is there");

    let atomic = scatter(|address, value| address.atomic_add(value));
    let compiled = Device::amd().compile(&atomic).unwrap_or_else(|error| panic!("{error}"));
    let source = compiled.source().expect("amd writes source");
    let kernel = &source[source.find("extern").expect("it has a kernel")..];
    assert!(readme.contains(kernel), "the README should show\n{kernel}");

    let plain = scatter(|address, value| address.store(address.load() + value));
    let error = Device::cpu().compile(&plain).expect_err("it is a race").to_string();
    let error = &error[error.find('%').expect("it names a node")..];
    let words = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words(&readme).contains(&words(error)), "the README should show\n{error}");
}
