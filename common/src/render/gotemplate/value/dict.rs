//! Dicts: Go's maps with strings as keys.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::list::drop_values;
use super::{Element, Value};

/// A dict. Clones are the SAME dict: what one changes (sprig's `set`) all see.
#[derive(Clone, Debug)]
pub struct Dict {
    element: Element,
    entries: Rc<Entries>,
}

/// The entries by name. No borrow of them outlives a method here, so that none can meet another.
#[derive(Debug, Default)]
struct Entries(RefCell<BTreeMap<Rc<str>, Value>>);

impl Dict {
    /// A new dict whose values are all of type `element`.
    #[must_use]
    pub fn new(element: Element, entries: impl IntoIterator<Item = (Rc<str>, Value)>) -> Self {
        Self {
            element,
            entries: Rc::new(Entries(RefCell::new(entries.into_iter().collect()))),
        }
    }

    /// The type of its values.
    #[must_use]
    pub fn element(&self) -> Element {
        self.element
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value> {
        self.entries.0.borrow().get(key).cloned()
    }

    /// Whether `key` is there, be it null.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.entries.0.borrow().contains_key(key)
    }

    /// Sets `key`, for all who share this dict.
    pub fn set(&self, key: impl Into<Rc<str>>, value: Value) {
        // The old value is dropped after the borrow has ended.
        let _old = self.entries.0.borrow_mut().insert(key.into(), value);
    }

    /// Removes `key`, for all who share this dict.
    pub fn remove(&self, key: &str) {
        let _old = self.entries.0.borrow_mut().remove(key);
    }

    /// Its entries as they are now, sorted by key.
    #[must_use]
    pub fn entries(&self) -> Vec<(Rc<str>, Value)> {
        let entries = self.entries.0.borrow();
        let entries = entries.iter();
        entries
            .map(|(key, value)| (Rc::clone(key), value.clone()))
            .collect()
    }

    /// Its keys as they are now, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<Rc<str>> {
        self.entries.0.borrow().keys().map(Rc::clone).collect()
    }

    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.0.borrow().len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both are the same dict, not only equal ones.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.entries, &other.entries)
    }

    /// The values of the last clone; nothing of a dict that others still share.
    pub(super) fn into_values(self) -> Vec<Value> {
        let entries = Rc::into_inner(self.entries).map(|entries| entries.0.take());
        entries.unwrap_or_default().into_values().collect()
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        let entries = std::mem::take(self.0.get_mut());
        drop_values(entries.into_values().collect());
    }
}
