//! Functions that machine code may call, by the names of the operations that they do.

use std::collections::BTreeMap;

use uop::{Contract, Declaration};

use crate::error::JitErrorKind;

/// What there is to call for declared operations without a body. Nothing else is ever called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions(BTreeMap<Box<str>, (Contract, usize)>);

impl Functions {
    /// Lets machine code call `function` for what is declared so.
    ///
    /// # Safety
    ///
    /// `function` is an `extern "C"` function that takes the declared arguments and returns the
    /// result, if there is one. Integers, f32 and f64 are passed as what they are, a `bool` as a
    /// `u8` of 0 or 1, a float of 16 bits as its bits in a `u16`, an address as a `*mut T` of those.
    /// It does to the elements that it is pointed to what the effect says, touches nothing else,
    /// does not unwind, and may be called by several threads at once, for as long as there is code
    /// that was compiled with it.
    #[must_use]
    pub unsafe fn with(mut self, declaration: &Declaration, function: *const ()) -> Functions {
        let entry = (declaration.contract().clone(), function.expose_provenance());
        self.0.insert(declaration.name().into(), entry);
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The address of the function for `declaration`.
    pub(crate) fn get(&self, declaration: &Declaration) -> Result<usize, JitErrorKind> {
        let name = declaration.name();
        match self.0.get(name) {
            Some((contract, address)) if contract == declaration.contract() => Ok(*address),
            Some(_) => Err(JitErrorKind::Signature { name: name.into() }),
            None => Err(JitErrorKind::NoFunction { name: name.into() }),
        }
    }
}
