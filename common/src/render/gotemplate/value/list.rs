//! Lists: Go's slices.

use std::ops::Deref;
use std::rc::Rc;

use super::{Dict, Element, Value};

/// A list that nobody changes: what changes a list makes a new one.
#[derive(Clone, Debug)]
pub struct List {
    element: Element,
    items: Rc<Items>,
}

/// The items, which are dropped one after the other however deep they are nested.
#[derive(Debug)]
struct Items(Vec<Value>);

impl List {
    /// A list of `items`, all of type `element`.
    #[must_use]
    pub fn new(element: Element, items: Vec<Value>) -> Self {
        Self {
            element,
            items: Rc::new(Items(items)),
        }
    }

    /// The type of its items.
    #[must_use]
    pub fn element(&self) -> Element {
        self.element
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items.0
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        drop_values(std::mem::take(&mut self.0));
    }
}

/// Drops values without recursion: a template can nest lists and dicts as deep as its steps reach.
pub(super) fn drop_values(mut values: Vec<Value>) {
    while let Some(value) = values.pop() {
        match value {
            Value::List(List { items, .. }) => {
                if let Some(mut items) = Rc::into_inner(items) {
                    values.append(&mut items.0);
                }
            }
            Value::Dict(dict) => values.extend(Dict::into_values(dict)),
            _ => {}
        }
    }
}
