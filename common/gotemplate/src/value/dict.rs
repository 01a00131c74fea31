//! Dicts: Go's maps with strings as keys.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::list::drop_values;
use super::{Type, Value};
use crate::function::Function;

/// A dict. Clones are the SAME dict: a `set` on one changes all of them.
#[derive(Clone, Debug)]
pub struct Dict(Rc<DictEntries>);

/// The entries of a dict. No borrow of them outlives a method of [`Dict`], so borrows never conflict.
#[derive(Debug)]
struct DictEntries {
    element: &'static Type,
    methods: &'static [Function<'static>],
    values: RefCell<BTreeMap<Rc<str>, Value>>,
}

impl Dict {
    /// Makes a dict whose values are all of type `element`.
    #[must_use]
    pub fn new(
        element: &'static Type,
        entries: impl IntoIterator<Item = (Rc<str>, Value)>,
    ) -> Self {
        Self::with_methods(element, &[], entries)
    }

    /// Makes a dict of a type that has `methods`. They get the dict as their first argument.
    #[must_use]
    pub fn with_methods(
        element: &'static Type,
        methods: &'static [Function<'static>],
        entries: impl IntoIterator<Item = (Rc<str>, Value)>,
    ) -> Self {
        Self(Rc::new(DictEntries {
            element,
            methods,
            values: RefCell::new(entries.into_iter().collect()),
        }))
    }

    /// Makes a dict of the same type.
    #[must_use]
    pub fn of_same_type(&self, entries: impl IntoIterator<Item = (Rc<str>, Value)>) -> Self {
        Self::with_methods(self.0.element, self.0.methods, entries)
    }

    /// Returns the type of the values.
    #[must_use]
    pub fn element(&self) -> &'static Type {
        self.0.element
    }

    /// Returns the methods of the type.
    #[must_use]
    pub fn methods(&self) -> &'static [Function<'static>] {
        self.0.methods
    }

    /// Returns the value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.values.borrow().get(key).cloned()
    }

    /// Returns whether `key` exists, even if its value is null.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.0.values.borrow().contains_key(key)
    }

    /// Sets `key`, in all clones of this dict.
    pub fn set(&self, key: impl Into<Rc<str>>, value: Value) {
        // The old value is dropped after the borrow has ended.
        let _old = self.0.values.borrow_mut().insert(key.into(), value);
    }

    /// Removes `key`, from all clones of this dict.
    pub fn remove(&self, key: &str) {
        let _old = self.0.values.borrow_mut().remove(key);
    }

    /// Returns a copy of the entries, sorted by key.
    #[must_use]
    pub fn entries(&self) -> Vec<(Rc<str>, Value)> {
        let values = self.0.values.borrow();
        let entries = values.iter();
        entries
            .map(|(key, value)| (Rc::clone(key), value.clone()))
            .collect()
    }

    /// Returns a copy of the keys, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<Rc<str>> {
        self.0.values.borrow().keys().map(Rc::clone).collect()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.values.borrow().len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether both are the same dict, not only equal dicts.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the values if this is the last clone, else none.
    pub(super) fn into_values(self) -> Vec<Value> {
        let values = Rc::into_inner(self.0).map(|entries| entries.values.take());
        values.unwrap_or_default().into_values().collect()
    }
}

impl Drop for DictEntries {
    fn drop(&mut self) {
        let values = std::mem::take(self.values.get_mut());
        drop_values(values.into_values().collect());
    }
}
