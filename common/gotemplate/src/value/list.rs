//! Lists: Go's slices.

use std::ops::Deref;
use std::rc::Rc;

use super::{Dict, Type, Value};

/// A list. It is immutable: functions that change a list return a new one.
#[derive(Clone, Debug)]
pub struct ListValue(Rc<ListItems>);

#[derive(Debug)]
struct ListItems {
    element: &'static Type,
    values: Vec<Value>,
}

impl ListValue {
    /// Makes a list of `values`, all of type `element`.
    #[must_use]
    pub fn new(element: &'static Type, values: Vec<Value>) -> Self {
        Self(Rc::new(ListItems { element, values }))
    }

    /// Returns the type of the items.
    #[must_use]
    pub fn element(&self) -> &'static Type {
        self.0.element
    }
}

impl Deref for ListValue {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0.values
    }
}

impl Drop for ListItems {
    fn drop(&mut self) {
        drop_values(std::mem::take(&mut self.values));
    }
}

/// Drops values without recursion: a template can nest lists and dicts as deep as its steps allow.
pub(super) fn drop_values(mut values: Vec<Value>) {
    while let Some(value) = values.pop() {
        match value {
            Value::List(ListValue(items)) => {
                if let Some(mut items) = Rc::into_inner(items) {
                    values.append(&mut items.values);
                }
            }
            Value::Dict(dict) => values.extend(Dict::into_values(dict)),
            _ => {}
        }
    }
}
