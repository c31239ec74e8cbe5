//! HIP by a real compiler, to AMD code that nothing here can run.

use std::fs;
use std::path::Path;

use super::tools;

/// The chips that are compiled for.
pub(crate) const CHIPS: [&str; 4] = ["gfx90a", "gfx942", "gfx1100", "gfx1201"];

/// The assembly of `source` for `chip`, after it made a code object as its head comment says.
#[track_caller]
pub(crate) fn compile(compiler: &str, source: &str, chip: &str, more: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("there is room for temporary files");
    let path = dir.path().join("kernel.hip");
    fs::write(&path, source).expect("the folder is writable");
    let [object, asm] = ["k.hsaco", "k.s"].map(|name| dir.path().join(name));
    let [path, object, asm] = [&path, &object, &asm].map(|p| p.to_str().expect("UTF-8"));
    let arch = format!("--offload-arch={chip}");
    let mut args = vec!["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-O3"];
    args.extend(["-nogpuinc", "-nogpulib", "-Wall", "-Wextra", "-Werror", &arch, path]);
    args.extend(more);
    tools::run(compiler, &[&args[..], &["-o", object]].concat(), Path::new("/dev/null"));
    let bytes = fs::read(object).expect("it was written");
    assert!(bytes.starts_with(b"\x7fELF"), "a code object is an ELF file");
    tools::run(compiler, &[&args[..], &["-S", "-o", asm]].concat(), Path::new("/dev/null"));
    fs::read_to_string(asm).expect("it was written")
}
