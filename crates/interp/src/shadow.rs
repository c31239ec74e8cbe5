//! The accesses of each element of a storage, as far as a later one could be unordered with them.

use uop::{AtomicOp, AxisType, DType, Graph, Id, Instance, Order, Relation};

/// What an access does to its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Atomic(AtomicOp, DType),
}

impl Kind {
    pub(crate) fn conflicts(self, other: Kind) -> bool {
        self == Kind::Write || self != other
    }
}

/// An access instance.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) node: Id,
    pub(crate) point: Box<[i128]>,
    kind: Kind,
    /// It and another one of its kind in the cell differ at a parallel range, so that nothing that
    /// conflicts with the kind can be after both: no more of them need be kept.
    settled: bool,
}

/// The last write of one element, and the reads and atomics since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    write: Option<Access>,
    since: Vec<Access>,
}

/// What is needed to compare accesses.
pub(crate) struct Judge<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) order: &'a Order,
}

impl Judge<'_> {
    /// Finds an access in `cell` that conflicts with `b` and is not before it, then adds `b`.
    pub(crate) fn record<'c>(
        &self,
        cell: &'c mut Cell,
        kind: Kind,
        b: Instance<'_>,
        pass: impl Fn(Id) -> bool,
    ) -> Result<(), &'c Access> {
        let wrong = |a: &Access| {
            let first = Instance { node: a.node, point: &a.point };
            a.kind.conflicts(kind)
                && self.order.relation(first, b) != Relation::Before
                && !pass(a.node)
        };
        if let Some(position) = cell.since.iter().position(wrong) {
            return Err(&cell.since[position]);
        }
        if cell.write.as_ref().is_some_and(wrong) {
            return cell.write.as_ref().map_or(Ok(()), Err);
        }
        let settled = match kind {
            Kind::Write => {
                cell.since.clear();
                if let Some(last) = &mut cell.write
                    && last.point.len() == b.point.len()
                {
                    // Saves an allocation for most writes.
                    last.point.copy_from_slice(b.point);
                    last.node = b.node;
                } else {
                    let point = b.point.into();
                    cell.write = Some(Access { node: b.node, point, kind, settled: false });
                }
                return Ok(());
            }
            Kind::Read | Kind::Atomic(..) => {
                let mut settled = false;
                for a in cell.since.iter_mut().filter(|a| a.kind == kind) {
                    if a.settled {
                        return Ok(());
                    }
                    if self.apart(a, b) {
                        settled = true;
                    } else if a.node == b.node && a.point.iter().zip(b.point).all(|(v, w)| v <= w) {
                        // What is after the new one is after the old one: at the first range where
                        // it differs from the old one it is the larger.
                        a.point.copy_from_slice(b.point);
                        return Ok(());
                    }
                }
                settled
            }
        };
        cell.since.push(Access { node: b.node, point: b.point.into(), kind, settled });
        Ok(())
    }

    /// Whether the two are unordered whatever the path between them: nothing is then ordered with
    /// both. LOCAL ranges are among these ranges as long as there is no BARRIER.
    fn apart(&self, a: &Access, b: Instance<'_>) -> bool {
        let regions = self.order.regions();
        let (left, right) = (regions.open(a.node), regions.open(b.node));
        let value = |open: &[Id], point: &[i128], r: Id| {
            open.iter().position(|&s| s == r).map(|position| point[position])
        };
        left.iter().chain(right).any(|&r| {
            let (v, w) = (value(left, &a.point, r), value(right, b.point, r));
            match self.graph.axis(r).kind {
                AxisType::Loop => false,
                AxisType::Global | AxisType::Thread => v != w,
                AxisType::Local => v.unwrap_or(0) != w.unwrap_or(0),
            }
        })
    }
}
