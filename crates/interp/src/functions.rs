//! What the oracle calls for declared operations without a body.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use uop::Const;

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A value.
    Value(Const),
    /// The elements that an address points to, as many as are declared. Where the operation changes
    /// memory, what the function leaves here is written; an undefined element of a BUFFER that it
    /// writes is given as 0.
    Elements(Vec<Const>),
}

/// What a function is: it may change the elements, and returns the result, if there is one.
pub type Function = dyn Fn(&mut [Argument]) -> Option<Const> + Send + Sync;

/// Functions by the names of the operations that they do. Clones share them.
#[derive(Clone, Default)]
pub struct Functions(BTreeMap<Box<str>, Arc<Function>>);

impl Functions {
    /// Calls `function` for what is declared as `name`. It returns the result, or `None` if the
    /// operation has none.
    #[must_use]
    pub fn with<F>(mut self, name: &str, function: F) -> Functions
    where
        F: Fn(&mut [Argument]) -> Option<Const> + Send + Sync + 'static,
    {
        self.0.insert(name.into(), Arc::new(function));
        self
    }

    /// The function for the operation `name`.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.0.get(name).map(|function| &**function)
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
