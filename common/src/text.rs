//! Lists in sentences that name only the first items and count the rest.

/// Returns the first items and how many more there are: `a, b and 2 more`.
pub fn list_first<I>(items: I, limit: usize) -> String
where
    I: IntoIterator<Item: ToString, IntoIter: ExactSizeIterator>,
{
    let items = items.into_iter();
    let rest = items.len().saturating_sub(limit);
    let named: Vec<String> = items.take(limit).map(|item| item.to_string()).collect();
    format!("{}{}", named.join(", "), and_more(rest))
}

/// Returns ` and 2 more`, or nothing if there are none.
#[must_use]
pub fn and_more(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!(" and {count} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::list_first;

    #[test]
    fn what_is_not_listed_is_counted() {
        assert_eq!(list_first([""; 0], 2), "");
        assert_eq!(list_first(["a", "b"], 2), "a, b");
        assert_eq!(list_first(["a", "b", "c", "d"], 2), "a, b and 2 more");
    }
}
