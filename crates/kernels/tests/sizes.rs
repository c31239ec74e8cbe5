//! Sizes, sane or not: a kernel, or an error in the words of its settings.
#![forbid(unsafe_code)]

use kernels::{KernelError, Kind, LIBRARY, Length, Setting, Settings};

const EDGES: [i64; 12] =
    [i64::MIN, -1, 0, 1, 255, 256, 257, 1 << 31, 1 << 32, 1 << 61, 1 << 62, i64::MAX];

/// Lengths with an edge.
const FORMS: [fn(i64) -> Vec<Length>; 4] = [
    |_| Vec::new(),
    |n| vec![Length::Fixed(n)],
    |n| vec![Length::Fixed(n), Length::Fixed(n)],
    |hi| vec![Length::Fixed(2), Length::Between { lo: 0, hi }],
];

#[test]
fn no_size_is_an_error_of_the_builder() {
    for entry in LIBRARY {
        let sizes: Vec<&Setting> = entry
            .settings
            .iter()
            .filter(|setting| matches!(setting.kind, Kind::Number(_) | Kind::Lengths(_)))
            .collect();
        let mut built = 0;
        for case in 0..EDGES.len().pow(sizes.len() as u32) {
            let edges: Vec<i64> = (0..sizes.len() as u32)
                .map(|i| EDGES[case / EDGES.len().pow(i) % EDGES.len()])
                .collect();
            for form in FORMS {
                let mut settings = Settings::default();
                for (size, &edge) in sizes.iter().zip(&edges) {
                    match size.kind {
                        Kind::Lengths(_) => settings.set_lengths(size.name, form(edge)),
                        _ => settings.set_number(size.name, edge),
                    }
                }
                match entry.build(&settings) {
                    Ok(_) => built += 1,
                    Err(KernelError::Size { .. } | KernelError::Bytes { .. }) => {}
                    Err(error) => panic!("{} {settings:?}: {error}", entry.name),
                }
            }
        }
        assert!(built > 0, "{}", entry.name);
    }
}

#[test]
fn a_shard_that_is_none_owns_nothing() {
    let mut kernel = kernels::EmbeddingBwd::new(1, 1, 10);
    kernel.shards = 4;
    assert_eq!([-1, 0, 3, 4].map(|k| kernel.rows(k)), [0..0, 0..3, 9..10, 10..10]);
    kernel.vocab = i64::MIN;
    assert!(EDGES.iter().all(|&k| kernel.rows(k).is_empty()));
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
