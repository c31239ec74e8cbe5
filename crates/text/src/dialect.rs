//! What tells one C-family language from another.

use lower::{Caps, GridLimits, Launch, LaunchIndex, ProgramParam};
use uop::{AtomicOp, DType};

use crate::emit::Kernel;
use crate::sections::section;

/// A language of the C family: what it does not share with the others.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The name in messages.
    pub name: &'static str,
    /// What a program for it may use.
    pub caps: Caps,
    /// The names of the scalar types; `None` if there are no values of that type.
    pub(crate) types: fn(DType) -> Option<&'static str>,
    /// Whether there is an f16, which converts from and to `float` by a cast; else it is its bits,
    /// as bf16 is everywhere.
    pub(crate) native_f16: bool,
    pub(crate) restrict: &'static str,
    /// What precedes the result type of a helper.
    pub(crate) helper: &'static str,
    /// What is behind the kernel's name in that of the entry.
    pub(crate) entry_suffix: &'static str,
    /// How an index from outside is spelled; `None` if there is none.
    pub(crate) index: fn(LaunchIndex) -> Option<&'static str>,
    /// The builtin for an atomic that there is: `function(&element, values… rest)` gives the old
    /// value. `None` if a helper does it.
    pub(crate) atomic: fn(AtomicOp, DType) -> Option<String>,
    pub(crate) atomic_rest: &'static str,
    /// Loads `old` from `p` atomically.
    pub(crate) atomic_load: &'static str,
    /// Whether `*p` had the bits of `old` and is `next` now; else `old` is what it has. Bits, so that
    /// a NaN does not loop for ever.
    pub(crate) compare_exchange: &'static str,
    /// The lines of the head comment below the arguments.
    pub(crate) notes: fn(&Kernel) -> String,
    /// What stands between the head comment and the helpers.
    pub(crate) prelude: fn(&Kernel) -> String,
    /// The functions.
    pub(crate) functions: fn(&Kernel) -> String,
}

/// C11 with the atomic builtins of gcc and clang, for a program without a grid.
///
/// `void NAME_range(void *const *buffers, const int64_t *variables, int64_t begin, int64_t end)` does a
/// part of the outermost parallel range, with the buffers by slot and the variables by number (the
/// order of their names); `void NAME(…)` does all of it.
pub const C: Dialect = Dialect {
    name: "c",
    caps: Caps { grid: None, narrow_index: false, templates: Some("c"), calls: false },
    types: c_type,
    native_f16: false,
    restrict: "restrict",
    helper: "static",
    entry_suffix: "_range",
    index: c_index,
    atomic: c_atomic,
    atomic_rest: ", __ATOMIC_RELAXED",
    atomic_load: "__atomic_load(p, &old, __ATOMIC_RELAXED)",
    compare_exchange: "__atomic_compare_exchange(p, &old, &next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)",
    notes: c_notes,
    prelude: c_prelude,
    functions: c_functions,
};

/// HIP for AMD GPUs, for a program with a grid. Needs no header and tolerates HIP's.
pub const HIP: Dialect = Dialect {
    name: "hip",
    // HIP: 2^31 - 1 blocks on x, fewer than 2^32 work-items in all, 1,024 of them in a block (the
    // HIP programming manual, "Kernel launch"; the y and z limits are those of hipDeviceProp_t).
    caps: Caps {
        grid: Some(GridLimits {
            blocks: [(1 << 31) - 1, 65_535, 65_535],
            block_items: 1_024,
            total_items: (1 << 32) - 1,
        }),
        narrow_index: true,
        templates: Some("hip"),
        calls: false,
    },
    types: hip_type,
    native_f16: true,
    // C++ has no `restrict`.
    restrict: "__restrict__",
    helper: "static __device__",
    entry_suffix: "",
    index: hip_index,
    atomic: hip_atomic,
    // Agent scope: all work-items of one device, no other device and no host.
    atomic_rest: ", __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT",
    atomic_load: "old = __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)",
    compare_exchange: "__hip_atomic_compare_exchange_strong(\
        p, &old, next, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)",
    notes: hip_notes,
    prelude: hip_prelude,
    functions: hip_functions,
};

impl Dialect {
    /// The name of the function that a launch looks up, for a kernel that is called `kernel` in the
    /// text.
    pub(crate) fn entry_name(&self, kernel: &str) -> String {
        format!("{kernel}{}", self.entry_suffix)
    }

    /// Whether `dtype` is a float of which there are only the bits here.
    pub(crate) fn is_bits(&self, dtype: DType) -> bool {
        dtype == DType::BF16 || dtype == DType::F16 && !self.native_f16
    }

    /// The name of `dtype`, one that has values here.
    pub(crate) fn name_of(&self, dtype: DType) -> &'static str {
        (self.types)(dtype).unwrap_or("void")
    }
}

fn c_type(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Void | DType::Index => return None,
        DType::Bool => "bool",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U8 => "uint8_t",
        DType::U16 | DType::F16 | DType::BF16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F32 => "float",
        DType::F64 => "double",
    })
}

/// Without a header there is no `int32_t`. `long` has 64 bits on AMD GPUs.
fn hip_type(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::I8 => "signed char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "long",
        DType::U8 => "unsigned char",
        // clang 19 has a `__bf16`, but no code for a bool as one: "cannot select".
        DType::U16 | DType::BF16 => "unsigned short",
        DType::U32 => "unsigned",
        DType::U64 => "unsigned long",
        DType::F16 => "_Float16",
        _ => return c_type(dtype),
    })
}

/// Silences warnings of -Wall and -Wextra that a generated comparison may deserve, such as one of a
/// widened integer with a wide constant.
fn quiet(kernel: &Kernel) -> String {
    if kernel.used.comparison { "\n".to_owned() + &section("quiet", &[]) } else { String::new() }
}

fn c_index(index: LaunchIndex) -> Option<&'static str> {
    match index {
        LaunchIndex::Begin => Some("begin"),
        LaunchIndex::End => Some("end"),
        _ => None,
    }
}

fn c_atomic(op: AtomicOp, dtype: DType) -> Option<String> {
    // The builtins wrap, signed or not, and gcc's take no float:
    // https://gcc.gnu.org/onlinedocs/gcc/_005f_005fatomic-Builtins.html
    match op {
        _ if dtype.is_float() => None,
        AtomicOp::Max | AtomicOp::Min | AtomicOp::Cas => None,
        AtomicOp::Exchange => Some("__atomic_exchange_n".to_owned()),
        _ => Some(format!("__atomic_fetch_{}", op.name())),
    }
}

fn c_notes(kernel: &Kernel) -> String {
    let entry = kernel.dialect.entry_name(&kernel.name);
    section("c_notes", &[("$entry", &entry), ("$name", &kernel.name), ("$extent", &extent(kernel))])
}

fn c_prelude(kernel: &Kernel) -> String {
    let mut out = String::new();
    if kernel.used.bool {
        out += "#include <stdbool.h>\n";
    }
    out += "#include <stdint.h>\n\n";
    out + &section("strict_floats", &[]) + "\n" + &section("c_contract", &[]) + &quiet(kernel)
}

fn c_functions(kernel: &Kernel) -> String {
    let name = &kernel.name;
    let entry = kernel.dialect.entry_name(name);
    let mut out = signature(
        "void",
        &entry,
        &["void *const *buffers", "const int64_t *variables", "int64_t begin", "int64_t end"]
            .map(String::from),
    );
    for (slot, param) in kernel.used_params() {
        let declaration = kernel.declaration(slot, param);
        out += &format!("    {declaration} = buffers[{slot}];\n");
    }
    if kernel.used_params().next().is_none() {
        out += "    (void)buffers;\n";
    }
    let mut unused = "    (void)variables;\n";
    for (number, name) in kernel.variables.iter().enumerate() {
        if kernel.used.indices.contains(&LaunchIndex::Variable(number)) {
            out += &format!("    const int64_t {name} = variables[{number}];\n");
            unused = "";
        }
    }
    out += unused;
    for (index, name) in [(LaunchIndex::Begin, "begin"), (LaunchIndex::End, "end")] {
        if !kernel.used.indices.contains(&index) {
            out += &format!("    (void){name};\n");
        }
    }
    out += &kernel.body;
    out += "}\n\n";

    let params = &kernel.program.params;
    let declarations = kernel.declarations();
    if declarations.is_empty() {
        out += &signature("void", name, &["void".to_owned()]);
        out += "    void *const *buffers = 0;\n";
    } else {
        out += &signature("void", name, &declarations);
        let pointers: Vec<String> = params
            .iter()
            .zip(&kernel.params)
            .map(|(p, name)| if p.mutable { name.clone() } else { format!("(void *){name}") })
            .collect();
        out += &format!("    void *const buffers[] = {{{}}};\n", pointers.join(", "));
    }
    let variables = if kernel.variables.is_empty() {
        "0".to_string()
    } else {
        out += &format!("    const int64_t variables[] = {{{}}};\n", kernel.variables.join(", "));
        "variables".to_string()
    };
    out += &format!("    {entry}(buffers, {variables}, 0, {});\n}}\n", extent(kernel));
    out
}

/// The instances of a program without a grid.
fn extent(kernel: &Kernel) -> String {
    match &kernel.program.launch {
        Launch::Range { extent } => extent.text(&kernel.variables),
        Launch::Grid { .. } => unreachable!("emit checks the launch before it frames the text"),
    }
}

fn hip_index(index: LaunchIndex) -> Option<&'static str> {
    // https://clang.llvm.org/docs/LanguageExtensions.html has no list; LLVM's
    // include/clang/Basic/BuiltinsAMDGPU.def has.
    match index {
        LaunchIndex::Block(0) => Some("__builtin_amdgcn_workgroup_id_x()"),
        LaunchIndex::Block(1) => Some("__builtin_amdgcn_workgroup_id_y()"),
        LaunchIndex::Block(2) => Some("__builtin_amdgcn_workgroup_id_z()"),
        LaunchIndex::Item(0) => Some("__builtin_amdgcn_workitem_id_x()"),
        LaunchIndex::Item(1) => Some("__builtin_amdgcn_workitem_id_y()"),
        LaunchIndex::Item(2) => Some("__builtin_amdgcn_workitem_id_z()"),
        _ => None,
    }
}

fn hip_atomic(op: AtomicOp, dtype: DType) -> Option<String> {
    match op {
        // Those of floats ignore a NaN.
        AtomicOp::Max | AtomicOp::Min if dtype.is_float() => None,
        AtomicOp::Cas => None,
        AtomicOp::Exchange => Some("__hip_atomic_exchange".to_owned()),
        _ => Some(format!("__hip_atomic_fetch_{}", op.name())),
    }
}

fn hip_notes(kernel: &Kernel) -> String {
    let (grid, block) = grid(kernel);
    let (grid, block) = (grid.join(" x "), block.map(|items| items.to_string()).join(" x "));
    let words = [("$grid", &*grid), ("$block", &*block), ("$name", &*kernel.name)];
    let mut out = section("hip_notes", &words);
    let atomics: Vec<&str> = kernel
        .used
        .atomics
        .iter()
        .filter(|&&(slot, op)| op == AtomicOp::Add && kernel.program.params[slot].dtype.is_float())
        .map(|&(slot, _)| kernel.params[slot].as_str())
        .collect();
    if !atomics.is_empty() {
        out += &section("hip_atomics", &[("$params", &atomics.join(", "))]);
    }
    out
}

fn hip_prelude(kernel: &Kernel) -> String {
    let mut out = section("strict_floats", &[]);
    if kernel.used.i64 {
        out += "static_assert(sizeof(long) == 8, \"64-bit integers are spelled long\");\n";
    }
    out = out + "\n" + &section("hip_contract", &[]) + &quiet(kernel);
    out = out + "\n" + &section("hip_global", &[]);
    if !kernel.used.helpers.is_empty() {
        out += &section("hip_device", &[]);
    }
    out + &section("hip_bounds", &[])
}

fn hip_functions(kernel: &Kernel) -> String {
    let (_, block) = grid(kernel);
    let items: u128 = block.iter().map(|&n| u128::from(n)).product();
    // The exact number: the default allows for 1024 and may spend fewer registers on each.
    let result = format!("extern \"C\" __global__ void __launch_bounds__({items})");
    let mut out = signature(&result, &kernel.name, &kernel.declarations());
    for (slot, name) in kernel.params.iter().enumerate() {
        if !kernel.used.params.contains(&slot) {
            out += &format!("    (void){name};\n");
        }
    }
    for (number, name) in kernel.variables.iter().enumerate() {
        if !kernel.used.indices.contains(&LaunchIndex::Variable(number)) {
            out += &format!("    (void){name};\n");
        }
    }
    out + &kernel.body + "}\n"
}

/// The grid and block of a program with a grid.
fn grid(kernel: &Kernel) -> ([String; 3], [u32; 3]) {
    match &kernel.program.launch {
        Launch::Grid { grid, block } => {
            (grid.each_ref().map(|size| size.text(&kernel.variables)), *block)
        }
        Launch::Range { .. } => unreachable!("emit checks the launch before it frames the text"),
    }
}

/// `result name(params) {`, on one line if that is short.
fn signature(result: &str, name: &str, params: &[String]) -> String {
    let line = format!("{result} {name}({}) {{\n", params.join(", "));
    if line.len() <= 100 {
        return line;
    }
    format!("{result} {name}(\n    {}) {{\n", params.join(",\n    "))
}

impl Kernel<'_> {
    /// The slots and parameters that the body mentions.
    fn used_params(&self) -> impl Iterator<Item = (usize, &ProgramParam)> {
        self.program.params.iter().enumerate().filter(|(slot, _)| self.used.params.contains(slot))
    }

    /// The declarations of all parameters and variables.
    fn declarations(&self) -> Vec<String> {
        let params = self.program.params.iter().enumerate();
        let params = params.map(|(slot, param)| self.declaration(slot, param));
        let variables = self.program.variables.iter().zip(&self.variables);
        let variables = variables
            .map(|(variable, name)| format!("{} {name}", self.dialect.name_of(variable.dtype)));
        params.chain(variables).collect()
    }

    /// `const float *restrict x`.
    fn declaration(&self, slot: usize, param: &ProgramParam) -> String {
        let qualifier = if param.mutable { "" } else { "const " };
        let dtype = self.dialect.name_of(param.dtype);
        // Launches check that a mutable buffer overlaps no other, so `restrict` is right, with one
        // exception: an element that is updated atomically is modified through another pointer,
        // that of another thread or work-item, while this one is in use (C11 section 6.7.3.1).
        let restrict = if self.used.atomics.iter().any(|&(updated, _)| updated == slot) {
            String::new()
        } else {
            format!("{} ", self.dialect.restrict)
        };
        format!("{qualifier}{dtype} *{restrict}{}", self.params[slot])
    }
}
