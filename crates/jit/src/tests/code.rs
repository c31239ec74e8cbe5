//! Of what is private in `code.rs`.

use super::*;

#[test]
fn the_target_names_versions_features_and_flags() {
    let [plain, verified] = [false, true].map(|verify| target(&Options { verify }));
    let triple = isa(&Options::default()).expect("this machine is known").triple().to_string();
    for part in ["uopc ", "cranelift ", cranelift_codegen::VERSION, &triple, "opt_level"] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    assert!(cfg!(not(target_arch = "x86_64")) || plain.contains("has_avx"), "{plain}");
    assert_ne!(plain, verified);
}

/// No test makes Cranelift itself panic: the whitelist is what prevents that.
#[test]
fn a_panic_is_an_error() {
    let program = Program {
        name: "bad".to_string(),
        params: vec![],
        variables: vec![],
        registers: vec![],
        launch: lower::Launch::Range { extent: 1.into() },
        customs: vec![],
        values: slotmap::SlotMap::with_key(),
        body: vec![],
    };
    let error = guard::<()>(&program, || panic!("no rule matched {}", 7));
    let error = error.expect_err("it panicked").to_string();
    assert_eq!(error, "kernel `bad`: cranelift: panicked: no rule matched 7");
}
