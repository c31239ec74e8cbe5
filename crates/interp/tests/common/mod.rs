//! A few words to write graphs in; the builder of `uop` is tested elsewhere.
#![allow(dead_code, unreachable_pub)]

use interp::{Data, Error, ErrorKind, Options, run};
use uop::{Access, Arg, Axis, AxisType, Const, Custom, DType, Graph, Id, Node, Op, Param, atomic};

#[derive(Default)]
pub struct Kernel {
    pub graph: Graph,
    count: u32,
}

impl Kernel {
    pub fn new() -> Kernel {
        Kernel::default()
    }

    pub fn node(&mut self, op: Op, dtype: DType, src: &[Id], arg: Arg) -> Id {
        self.graph.intern(Node::new(op, dtype, src.iter().copied()).with_arg(arg))
    }

    pub fn op(&mut self, op: Op, src: &[Id]) -> Id {
        self.graph.op(op, src)
    }

    fn shape(&mut self, shape: &[i64]) -> Vec<Id> {
        shape.iter().map(|&n| self.int(n)).collect()
    }

    fn number(&mut self) -> u32 {
        self.count += 1;
        self.count
    }

    /// A mutable PARAM.
    pub fn param(&mut self, slot: u32, dtype: DType, shape: &[i64]) -> Id {
        let src = self.shape(shape);
        let param = Param { slot, name: format!("p{slot}").into(), mutable: true };
        self.node(Op::Param, dtype, &src, Arg::Param(Box::new(param)))
    }

    pub fn buffer(&mut self, dtype: DType, shape: &[i64]) -> Id {
        let src = self.shape(shape);
        let number = self.number();
        self.node(Op::Buffer, dtype, &src, Arg::Buffer(number))
    }

    pub fn int(&mut self, value: i64) -> Id {
        self.graph.index(value)
    }

    pub fn float(&mut self, value: f32) -> Id {
        self.graph.constant(DType::F32, value.into())
    }

    pub fn bool(&mut self, value: bool) -> Id {
        self.graph.constant(DType::Bool, Const::Bool(value))
    }

    pub fn range(&mut self, bound: i64, kind: AxisType) -> Id {
        let bound = self.int(bound);
        self.range_to(bound, kind)
    }

    pub fn range_to(&mut self, bound: Id, kind: AxisType) -> Id {
        let number = self.number();
        self.node(Op::Range, DType::Index, &[bound], Arg::Range(Axis { number, kind }))
    }

    pub fn at(&mut self, buffer: Id, indexes: &[Id]) -> Id {
        let src: Vec<Id> = [&[buffer], indexes].concat();
        self.op(Op::Index, &src)
    }

    pub fn load(&mut self, buffer: Id, indexes: &[Id]) -> Id {
        let address = self.at(buffer, indexes);
        self.op(Op::Load, &[address])
    }

    pub fn store(&mut self, buffer: Id, indexes: &[Id], value: Id) -> Id {
        let address = self.at(buffer, indexes);
        self.op(Op::Store, &[address, value])
    }

    pub fn store_disjoint(&mut self, buffer: Id, indexes: &[Id], value: Id) -> Id {
        let address = self.at(buffer, indexes);
        let access = Access { assume_disjoint: true, ..Access::default() };
        self.node(Op::Store, DType::Void, &[address, value], Arg::Access(access))
    }

    pub fn atomic_add(&mut self, buffer: Id, indexes: &[Id], value: Id) -> Id {
        let address = self.at(buffer, indexes);
        self.atomic_add_at(&[address, value])
    }

    /// Address, value and perhaps a gate.
    pub fn atomic_add_at(&mut self, src: &[Id]) -> Id {
        let custom: Custom = atomic::add(self.graph[src[0]].dtype);
        let number = self.graph.len() as u32;
        let arg = Arg::Custom { custom, number, access: Access::default() };
        self.node(Op::Custom, DType::Void, src, arg)
    }

    pub fn cast(&mut self, x: Id, dtype: DType) -> Id {
        self.graph.cast(x, dtype)
    }

    pub fn end(&mut self, body: Id, ranges: &[Id]) -> Id {
        let src: Vec<Id> = [&[body], ranges].concat();
        self.op(Op::End, &src)
    }

    pub fn after(&mut self, x: Id, deps: &[Id]) -> Id {
        let src: Vec<Id> = [&[x], deps].concat();
        self.op(Op::After, &src)
    }

    pub fn sink(&mut self, effect: Id) -> Id {
        self.node(Op::Sink, DType::Void, &[effect], Arg::Sink("test".into()))
    }

    /// Runs with four seeds, which must agree.
    #[track_caller]
    pub fn run(&mut self, effect: Id, params: Vec<Data>) -> Vec<Data> {
        let sink = self.sink(effect);
        let one = |seed| {
            let mut params = params.clone();
            match run(&self.graph, sink, &mut params, &Options { seed, ..Options::default() }) {
                Ok(()) => params,
                Err(e) => panic!("{e}"),
            }
        };
        let first = one(0);
        for seed in 1..4 {
            let other = one(seed);
            assert!(first.iter().zip(&other).all(|(a, b)| a.agrees(b)), "seed {seed} disagrees");
        }
        first
    }

    pub fn try_run(
        &mut self,
        effect: Id,
        mut params: Vec<Data>,
        options: &Options,
    ) -> Result<Vec<Data>, Error> {
        let sink = self.sink(effect);
        run(&self.graph, sink, &mut params, options).map(|()| params)
    }

    #[track_caller]
    pub fn fail(&mut self, effect: Id, params: Vec<Data>) -> ErrorKind {
        match self.try_run(effect, params, &Options::default()) {
            Ok(_) => panic!("the oracle accepts it"),
            Err(e) => e.kind,
        }
    }
}

pub fn f32s(data: &[f32]) -> Data {
    data.to_vec().into()
}

pub fn i32s(data: &[i32]) -> Data {
    data.to_vec().into()
}
