//! From a program to code that can be run: the target, the module, and who frees it.

use std::any::Any;
use std::fmt;
use std::mem::{ManuallyDrop, transmute};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::OnceLock;

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable, SetError, Value};
use cranelift_codegen::{CodegenError, Context};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, ModuleError, default_libcall_names};
use lower::Program;

use crate::error::{JitError, JitErrorKind};
use crate::functions::Functions;
use crate::translate::translate;

/// How to compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether Cranelift checks its IR between passes, and its register allocation: for tests, as it
    /// doubles the time. The code is the same.
    pub verify: bool,
}

/// Arguments: the buffers by slot, the variables by number, the first instance, and one above the
/// last.
type Entry =
    unsafe extern "C" fn(buffers: *const *mut u8, variables: *const i64, begin: i64, end: i64);

/// The machine code of one program; freed when dropped.
pub struct Code {
    /// Never read: it is what the code is freed by.
    _module: OwnedModule,
    entry: Entry,
    /// The length of the code and its constants, in bytes.
    size: usize,
    /// How many buffers it takes.
    buffers: usize,
    /// How many variables it takes.
    variables: usize,
}

// SAFETY: `JITModule` is `Send` but not `Sync` for a cache of symbols behind a `RefCell`. No method
// of `Code` touches the module by a shared reference; it is there to be freed.
unsafe impl Sync for Code {}

impl Code {
    /// Does the instances `begin..end`; nothing if there are none.
    ///
    /// # Safety
    ///
    /// With `program` the one this was compiled from, until the call returns:
    ///
    /// - `variables` are within the bounds of the program's, by number.
    /// - `buffers[slot]` points to the elements of parameter `slot`, as many as its
    ///   [shape](lower::ProgramParam::shape_at) has with these variables, aligned to the size of an element and valid for reads, and for writes too if the
    ///   parameter is mutable. A `bool` is one byte, 0 or 1. A pointer to no elements may be any.
    /// - A mutable buffer overlaps no other one, and nobody else accesses it, nor writes any other
    ///   of them, except that calls of this function on any threads may share the buffers if the
    ///   ranges `begin..end` of those that overlap in time are disjoint.
    /// - `0 <= begin` and `end <= extent`, as the program's launch has it.
    /// - The program keeps the promises of [`lower::program`]: each address whose statement is
    ///   reached with a true gate is within its buffer, and slices may run at the same time.
    ///
    /// # Panics
    ///
    /// If the number of buffers is not the number of parameters, or that of variables not theirs.
    pub unsafe fn run(&self, buffers: &[*mut u8], variables: &[i64], begin: i64, end: i64) {
        assert_eq!(buffers.len(), self.buffers, "one buffer for each parameter");
        assert_eq!(variables.len(), self.variables, "one value for each variable");
        // SAFETY: `entry` is code of the type `Entry`, mapped until `self` is dropped. It reads one
        // pointer per parameter and one value per variable, as many as there are; the rest is the
        // caller's promise.
        unsafe { (self.entry)(buffers.as_ptr(), variables.as_ptr(), begin, end) }
    }

    /// The machine code, constants included.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the module keeps these `size` bytes mapped, readable and unchanged until `self`
        // is dropped.
        unsafe { slice::from_raw_parts(self.entry as *const u8, self.size) }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Code { size, buffers, .. } = self;
        f.debug_struct("Code").field("size", size).field("buffers", buffers).finish_non_exhaustive()
    }
}

/// The machine code of `program` for this machine.
///
/// # Errors
///
/// See [`JitErrorKind`]. Nothing panics; but where Cranelift itself does, which would be a bug, the
/// panic hook of the process has run before the error comes back.
pub fn compile(program: &Program, options: &Options) -> Result<Code, JitError> {
    compile_with(program, options, &Functions::default())
}

/// [`compile`], with functions for declared operations without a body.
///
/// # Errors
///
/// As [`compile`].
pub fn compile_with(
    program: &Program,
    options: &Options,
    functions: &Functions,
) -> Result<Code, JitError> {
    guard(program, || {
        let isa = isa(options)?;
        let mut context = Context::for_function(translate(program, isa, functions)?);
        let builder = JITBuilder::with_isa(isa.clone(), default_libcall_names());
        let mut module = OwnedModule(ManuallyDrop::new(JITModule::new(builder)));
        let function = module
            .0
            .declare_function(&program.name, Linkage::Local, &context.func.signature)
            .map_err(explain)?;
        module.0.define_function(function, &mut context).map_err(explain)?;
        module.0.finalize_definitions().map_err(explain)?;
        let address = module.0.get_finalized_function(function);
        let compiled = context.compiled_code();
        Ok(Code {
            // SAFETY: the function has just been compiled with the signature that `translate` gives
            // every function, which is that of `Entry`.
            entry: unsafe { transmute::<*const u8, Entry>(address) },
            size: compiled.map_or(0, |code| code.code_buffer().len()),
            buffers: program.params.len(),
            variables: program.variables.len(),
            _module: module,
        })
    })
}

/// The CLIF text of `program`: what Cranelift is given, before it optimises.
///
/// # Errors
///
/// As [`compile`], as far as it gets.
pub fn clif(program: &Program, options: &Options) -> Result<String, JitError> {
    guard(program, || {
        let isa = isa(options)?;
        let function = translate(program, isa, &Functions::default())?;
        if options.verify {
            cranelift_codegen::verify_function(&function, &**isa)
                .map_err(|errors| JitErrorKind::Codegen(errors.to_string()))?;
        }
        Ok(function.display().to_string())
    })
}

/// What the code of a program depends on beside the program: the versions of this compiler and of
/// Cranelift, the target, its features and all flags, one a line. Where this machine is none that
/// Cranelift knows, the reason; nothing compiles then.
pub fn target(options: &Options) -> String {
    let versions = concat!("uopc ", env!("CARGO_PKG_VERSION"), "\ncranelift ");
    let target = match isa(options) {
        Ok(isa) => {
            let features: Vec<String> = isa.isa_flags().iter().map(Value::to_string).collect();
            format!("{}\n{}\n{}", isa.triple(), features.join("\n"), isa.flags())
        }
        Err(kind) => kind.to_string(),
    };
    format!("{versions}{}\n{target}", cranelift_codegen::VERSION)
}

/// A module whose memory goes when it does; `JITModule` alone leaks it.
struct OwnedModule(ManuallyDrop<JITModule>);

impl Drop for OwnedModule {
    fn drop(&mut self) {
        // SAFETY: `self.0` is not used again. The only pointers to the code are in the `Code` that
        // owns this, so none of it is running or will be called.
        unsafe { ManuallyDrop::take(&mut self.0).free_memory() }
    }
}

/// The target: this machine with all its features, set up once per process.
fn isa(options: &Options) -> Result<&'static OwnedTargetIsa, JitErrorKind> {
    static ISAS: [OnceLock<Result<OwnedTargetIsa, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    let isa = ISAS[usize::from(options.verify)].get_or_init(|| {
        let flags = flags(options).map_err(|error| error.to_string())?;
        let isa = cranelift_native::builder()?.finish(flags).map_err(|error| error.to_string())?;
        if isa.pointer_bits() != 64 {
            return Err("addresses are not 64-bit".to_string());
        }
        Ok(isa)
    });
    isa.as_ref().map_err(|error| JitErrorKind::Host(error.clone()))
}

fn flags(options: &Options) -> Result<settings::Flags, SetError> {
    let verify = if options.verify { "true" } else { "false" };
    let mut builder = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("enable_verifier", verify),
        ("regalloc_checker", verify),
        ("unwind_info", "false"),
        // Nothing aligns loops, so their speed would vary with the place of the function.
        ("log2_min_function_alignment", "6"),
        // A frame with large register buffers must not step over the guard page of the stack.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ] {
        builder.set(name, value)?;
    }
    Ok(settings::Flags::new(builder))
}

/// `body`, whose errors, and panics in Cranelift, are those of `program`.
fn guard<T>(
    program: &Program,
    body: impl FnOnce() -> Result<T, JitErrorKind>,
) -> Result<T, JitError> {
    // Whatever `body` had begun goes with it. `isa` outlives it, but is complete or absent.
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|payload| Err(JitErrorKind::Codegen(panic_message(&*payload))))
        .map_err(|kind| JitError { kernel: program.name.clone(), kind })
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}

/// The message, with what the verifier found.
fn explain(error: ModuleError) -> JitErrorKind {
    JitErrorKind::Codegen(match error {
        ModuleError::Compilation(CodegenError::Verifier(errors)) => errors.to_string(),
        error => error.to_string(),
    })
}

#[cfg(test)]
#[path = "tests/code.rs"]
mod tests;
