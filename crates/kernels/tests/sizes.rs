//! Sizes, sane or not: a kernel, or an error in the words of its settings.
#![forbid(unsafe_code)]

use kernels::{KernelError, Kind, LIBRARY, Settings};

const EDGES: [i64; 12] =
    [i64::MIN, -1, 0, 1, 255, 256, 257, 1 << 31, 1 << 32, 1 << 61, 1 << 62, i64::MAX];

#[test]
fn no_size_is_an_error_of_the_builder() {
    for entry in LIBRARY {
        let numbers: Vec<&str> = entry
            .settings
            .iter()
            .filter(|setting| matches!(setting.kind, Kind::Number(_)))
            .map(|setting| setting.name)
            .collect();
        let mut built = 0;
        for case in 0..EDGES.len().pow(numbers.len() as u32) {
            let mut settings = Settings::default();
            for (i, name) in numbers.iter().enumerate() {
                let edge = case / EDGES.len().pow(i as u32) % EDGES.len();
                settings.set_number(name, EDGES[edge]);
            }
            match entry.build(&settings) {
                Ok(_) => built += 1,
                Err(KernelError::Size { .. } | KernelError::Bytes { .. }) => {}
                Err(error) => panic!("{} {settings:?}: {error}", entry.name),
            }
        }
        assert!(built > 0, "{}", entry.name);
    }
}

#[test]
fn messages() {
    let zero = |n| kernels::zero(n, uop::DType::I64).expect_err("there is none").to_string();
    assert_eq!(zero(-1), "len must be at least 0, found -1");
    let want = "out of shape [1152921504606846976] is more than 9223372036854775807 bytes";
    assert_eq!(zero(1 << 60), want);
    let bwd = kernels::EmbeddingBwd::new(1 << 62, 2, 1).build();
    let want = "grad_emb of shape [4611686018427387904, 2] is more than 9223372036854775807 bytes";
    assert_eq!(bwd.expect_err("there is none").to_string(), want);
}
