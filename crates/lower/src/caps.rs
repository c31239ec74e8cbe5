//! What a target can do, as far as the passes must know. Targets have names elsewhere.

/// The abilities of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Limits of the launch grid; `None` if there is no grid, as on a CPU.
    pub grid: Option<GridLimits>,
    /// Whether addresses are computed in 32 bits where they fit, instead of always in 64.
    pub narrow_index: bool,
    /// Under which name a declared operation has its template, if the target takes any.
    pub templates: Option<&'static str>,
    /// Whether it calls what is declared without a body by its name, as a function.
    pub calls: bool,
}

/// The limits of a launch grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridLimits {
    /// The most blocks along x, y and z.
    pub blocks: [u64; 3],
    /// The most work-items in one block.
    pub block_items: u64,
    /// The most work-items in all.
    pub total_items: u64,
}
