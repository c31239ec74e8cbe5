//! scratch
#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use runtime::*;
use std::time::*;
fn median(mut v: Vec<Duration>) -> (Duration, Duration, Duration) {
    v.sort();
    (v[v.len() / 20], v[v.len() / 2], v[v.len() * 19 / 20])
}
fn main() {
    let kernel = scatter(4096, 64, 1000);
    for device in Device::all() {
        let t: Vec<_> = (0..300).map(|_| compile(&device, &kernel).compile_time()).collect();
        println!("{} first {:?} 5%/median/95% {:?}", device.name(), t[0], median(t[50..].to_vec()));
    }
    let p: Vec<_> = (0..300)
        .map(|_| {
            let s = Instant::now();
            uop::verify(&kernel.graph, kernel.sink, uop::Phase::Built).unwrap();
            s.elapsed()
        })
        .collect();
    println!("verify {:?}", median(p));
    let caps = Device::cpu().caps().unwrap();
    let p: Vec<_> = (0..300)
        .map(|_| {
            let s = Instant::now();
            lower::lower(&kernel.graph, kernel.sink, &caps).unwrap();
            s.elapsed()
        })
        .collect();
    println!("lower {:?}", median(p));
    let prog = lower::lower(&kernel.graph, kernel.sink, &caps).unwrap();
    let p: Vec<_> = (0..300)
        .map(|_| {
            let s = Instant::now();
            jit::compile(&prog, &Default::default()).unwrap();
            s.elapsed()
        })
        .collect();
    println!("jit {:?}", median(p));
    let (n, d, v) = (4096usize, 64usize, 1000usize);
    let c = compile(&Device::cpu(), &kernel);
    let (mut table, grad) = (vec![0f32; v * d], vec![1f32; n * d]);
    let idx: Vec<i32> = (0..n as i32).map(|i| i * 7919 % v as i32).collect();
    for threads in [1, 2, 7] {
        let t: Vec<_> = (0..300)
            .map(|_| {
                launch(
                    &c,
                    &mut [Buffer::from(&mut table), Buffer::from(&grad), Buffer::from(&idx)],
                    threads,
                )
                .time
            })
            .collect();
        println!("scatter {n}x{d} threads {threads}: {:?}", median(t));
    }
    let c = compile(&Device::cpu(), &saxpy(2));
    let (mut y, x) = (vec![0f32; 2], vec![1f32; 2]);
    for threads in [1, 2] {
        let t: Vec<_> = (0..3000)
            .map(|_| {
                let s = Instant::now();
                launch(&c, &mut [Buffer::from(&mut y), Buffer::from(&x)], threads);
                s.elapsed()
            })
            .collect();
        println!("whole launch of 2 elements, threads {threads}: {:?}", median(t));
    }
}
