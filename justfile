# Lists the recipes.
default:
    @just --list

# What CI checks, but for the tools that it installs.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
    cargo test --workspace

# Rewrites the golden files from what the code does now; review the diff.
bless:
    UOPC_BLESS=1 UPDATE_EXPECT=1 cargo test --workspace

# Times compiling and running; compare with a run from before the change.
bench *ARGS:
    cargo bench -p uopc {{ARGS}}

# Prints the graph of a kernel before lowering and the program after.
dump FILE:
    cargo run --release -q -p uopc -- fmt {{FILE}}
    cargo run --release -q -p uopc -- emit {{FILE}} --target program

# Prints the lines of code of each crate, and fails above the budget.
size:
    scripts/size
