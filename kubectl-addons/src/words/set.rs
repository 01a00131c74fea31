//! Sentences about sets that are applied.

/// Says that a cluster without a ready node has to get its set alone. `again` is the command for it.
pub fn describe_new_cluster(again: &str) -> String {
    let why = "no node is ready: core add-ons and network plugins come first, and the rest after a look at the nodes";
    format!("{why}\ncontinue: {again}")
}

/// Says that no node of a cluster became ready in time, and how many add-ons of the set wait for one.
pub fn describe_no_node(waiting: usize, again: &str) -> String {
    format!("no node is ready: {waiting} add-ons wait for one\ncontinue: {again}")
}
