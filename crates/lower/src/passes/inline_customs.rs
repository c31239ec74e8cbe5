use std::collections::{HashMap, HashSet};

use uop::{Access, Arg, Const, Custom, DType, Graph, Id, Node, Op, Regions, Sources};

use super::{add_gate, pin_address};
use crate::caps::Caps;
use crate::error::{LowerError, LowerErrorKind};

/// Replaces each declared CUSTOM by its body, unless the target has a template for it, or calls it
/// for want of a body.
///
/// The accesses of the body get the gate and the flags of the CUSTOM, and the buffers that they
/// touch come after its ranges, so that they have its instances. Takes and keeps `Phase::Built`.
///
/// # Errors
///
/// `NoDefinition` for what has neither a body nor, here, a template.
pub fn inline_customs(graph: &mut Graph, root: Id, caps: &Caps) -> Result<Id, LowerError> {
    let mut numbers = HashSet::new();
    let mut bodies = HashMap::new();
    for n in graph.reachable(root) {
        let Arg::Custom { custom, number, .. } = &graph[n].arg else { continue };
        numbers.insert(*number);
        let Custom::Declared(declaration) = custom else { continue };
        if caps.templates.is_some_and(|target| declaration.template_for(target).is_some()) {
            continue;
        }
        match declaration.uops() {
            Some((body, _)) => _ = bodies.insert(n, body),
            None if caps.calls => {}
            None => {
                let target = caps.templates.unwrap_or("this target");
                let name = declaration.name().into();
                return Err(LowerErrorKind::NoDefinition { name, target }.at(graph, n));
            }
        }
    }
    if bodies.is_empty() {
        return Ok(root);
    }
    let regions = Regions::of(graph, root);
    let mut free = (0..=u32::MAX).filter(|number| !numbers.contains(number));
    let mut new: Vec<Option<Id>> = vec![None; root.index() + 1];
    // The accesses that stand for a CUSTOM with a value.
    let mut inlined: HashMap<Id, Sources> = HashMap::new();
    Ok(graph.rebuild(root, |graph, old, mut node| {
        let id = if let Some(body) = bodies.get(&old) {
            for (s, before) in node.src.iter_mut().zip(graph[old].src.clone()) {
                if graph.storage(before).is_some() {
                    let lacks = |r: &&Id| !regions.open(before).contains(r);
                    let ranges = regions.open(old).iter().filter(lacks);
                    let ranges: Sources = ranges.filter_map(|r| new[r.index()]).collect();
                    *s = pin_address(graph, *s, &ranges);
                }
            }
            let (value, accesses) = inline(graph, &node, body, &mut free);
            if node.dtype != DType::Void {
                inlined.insert(old, accesses);
            }
            value
        } else {
            in_place_of_effects(graph, old, &mut node, &inlined);
            graph.intern(node)
        };
        new[old.index()] = Some(id);
        id
    }))
}

/// A copy of `body` with the sources of the CUSTOM `node` for its arguments: its value, or effect if
/// it has none, and its accesses.
fn inline(
    graph: &mut Graph,
    node: &Node,
    body: &Graph,
    free: &mut impl Iterator<Item = u32>,
) -> (Id, Sources) {
    let (gate, Arg::Custom { number, access: flags, .. }) = (node.gate(), &node.arg) else {
        unreachable!("only a CUSTOM has a body")
    };
    let mut number = Some(*number);
    let mut copies = Sources::new();
    let mut accesses = Sources::new();
    for n in (0..body.len()).map(|n| body.nth(n)) {
        let mut copy = body[n].clone();
        if let Arg::Argument { number, .. } = copy.arg {
            copies.push(node.src[number as usize]);
            continue;
        }
        for s in &mut copy.src {
            *s = copies[s.index()];
        }
        let assume_disjoint = flags.assume_disjoint && copy.is_effect();
        if let Arg::Access(access) | Arg::Custom { access, .. } = &mut copy.arg {
            *access = Access { assume_disjoint, ..*flags };
        }
        if let Arg::Custom { number: own, .. } = &mut copy.arg {
            *own = number.take().or_else(|| free.next()).expect("there are fewer nodes");
        }
        let is_access = copy.is_access();
        if let Some(gate) = gate.filter(|_| is_access) {
            add_gate(graph, &mut copy, gate);
        }
        copies.push(graph.intern(copy));
        accesses.extend(copies.last().copied().filter(|_| is_access));
    }
    let mut value = *copies.last().expect("a body has a root");
    if let Some(gate) = gate.filter(|_| node.dtype != DType::Void) {
        let zero = graph.constant(node.dtype, Const::zero(node.dtype));
        value = graph.op(Op::Where, &[gate, value, zero]);
    }
    (value, accesses)
}

/// In `node`, which was `old`, where a CUSTOM with a value stood for its effect, or was waited for:
/// the accesses of its body.
fn in_place_of_effects(
    graph: &mut Graph,
    old: Id,
    node: &mut Node,
    inlined: &HashMap<Id, Sources>,
) {
    let first = match node.op {
        Op::After => 1,
        Op::End | Op::Group | Op::Sink => 0,
        _ => return,
    };
    let mut src: Sources = node.src[..first].into();
    for slot in first..node.src.len() {
        match inlined.get(&graph[old].src[slot]) {
            None => src.push(node.src[slot]),
            Some(accesses) if node.op == Op::After => src.extend_from_slice(accesses),
            Some(accesses) => {
                let mut effects = accesses.clone();
                effects.retain(|n| graph[*n].is_effect());
                src.push(graph.op(Op::Group, &effects));
            }
        }
    }
    node.src = src;
}
