use super::*;
use common::manifest::key::ObjectKey;

/// `a`, `b`, … are objects of part 0, `A`, `B`, … of part 1, digits are gates.
fn graph(names: &str, edges: &[(char, Until, char)]) -> Graph {
    let nodes = names.chars().map(|name| match name {
        '0'..='9' => GraphNode::Gate {
            title: name.to_string(),
        },
        _ => GraphNode::Object {
            part: usize::from(name.is_uppercase()),
            key: ObjectKey {
                name: name.to_string(),
                ..ObjectKey::default()
            },
        },
    });
    let id = |name| names.find(name).unwrap();
    let mut edges: Vec<Edge> = edges
        .iter()
        .map(|(from, until, to)| Edge {
            from: id(*from),
            to: id(*to),
            until: *until,
            reason: EdgeReason::DependsOn,
        })
        .collect();
    edges.sort();
    Graph {
        nodes: nodes.collect(),
        edges,
    }
}

fn begun(schedule: &mut Schedule<'_>, names: &str) -> String {
    let begun = std::iter::from_fn(|| schedule.begin());
    begun.map(|node| names.chars().nth(node).unwrap()).collect()
}

fn skipped(names: &str, skipped: &[SkippedNode]) -> String {
    let name = |skipped: &SkippedNode| names.chars().nth(skipped.node).unwrap();
    let mut names: Vec<char> = skipped.iter().map(name).collect();
    names.sort_unstable();
    names.into_iter().collect()
}

#[test]
fn what_nothing_holds_begins_in_the_order_of_the_nodes() {
    let names = "abcd";
    let graph = graph(
        names,
        &[('a', Until::Applied, 'c'), ('b', Until::Ready, 'c')],
    );
    let mut schedule = Schedule::new(&graph, 1, true, |_| true);
    assert_eq!(begun(&mut schedule, names), "", "the part is not open");
    schedule.open(0);
    assert_eq!(begun(&mut schedule, names), "abd");
    assert_eq!(schedule.mark_applied(0), None);
    assert_eq!(schedule.mark_applied(1), Some(Until::Ready));
    assert_eq!(begun(&mut schedule, names), "");
    schedule.mark_ready(1);
    assert_eq!(begun(&mut schedule, names), "c");
    for node in [2, 3] {
        assert!(!schedule.is_over(0));
        assert_eq!(schedule.mark_applied(node), None);
    }
    assert!(schedule.is_over(0));
}

#[test]
fn without_waiting_applied_is_enough_but_for_definitions() {
    let names = "abc";
    let graph = graph(
        names,
        &[('a', Until::Ready, 'c'), ('b', Until::Served, 'c')],
    );
    let mut schedule = Schedule::new(&graph, 1, false, |_| true);
    schedule.open(0);
    assert_eq!(begun(&mut schedule, names), "ab");
    assert_eq!(schedule.mark_applied(0), None);
    assert_eq!(schedule.mark_applied(1), Some(Until::Served));
    schedule.mark_ready(1);
    assert_eq!(begun(&mut schedule, names), "c");
}

#[test]
fn nothing_is_watched_without_a_request() {
    let names = "abc";
    let graph = graph(names, &[('a', Until::Ready, 'b'), ('b', Until::Ready, 'c')]);
    let mut schedule = Schedule::new(&graph, 1, true, |node| node == 1);
    schedule.open(0);
    assert_eq!(begun(&mut schedule, names), "a");
    assert_eq!(schedule.mark_applied(0), Some(Until::Ready), "b is sent");
    schedule.mark_ready(0);
    assert_eq!(begun(&mut schedule, names), "b");
    assert_eq!(schedule.mark_applied(1), None, "c is not");
    assert_eq!(begun(&mut schedule, names), "c");
}

#[test]
fn gates_pass_when_everything_before_them_has() {
    let names = "ab0C1D";
    let edges = [
        ('a', Until::Applied, '0'),
        ('b', Until::Ready, '0'),
        ('0', Until::Applied, '1'),
        ('1', Until::Applied, 'C'),
        ('1', Until::Ready, 'D'),
    ];
    let graph = graph(names, &edges);
    let mut schedule = Schedule::new(&graph, 2, true, |_| true);
    schedule.open(0);
    schedule.open(1);
    assert_eq!(begun(&mut schedule, names), "ab");
    schedule.mark_applied(0);
    assert_eq!(schedule.mark_applied(1), Some(Until::Ready));
    assert!(!schedule.is_over(0) && !schedule.is_over(1));
    schedule.mark_ready(1);
    assert!(schedule.is_over(0));
    assert_eq!(begun(&mut schedule, names), "CD");
}

#[test]
fn a_failure_stops_what_waits_for_it_and_nothing_else() {
    let names = "ab0cdE";
    let edges = [
        ('a', Until::Applied, '0'),
        ('b', Until::Applied, '0'),
        ('0', Until::Applied, 'c'),
        ('c', Until::Applied, 'E'),
        ('b', Until::Applied, 'd'),
    ];
    let graph = graph(names, &edges);
    let mut schedule = Schedule::new(&graph, 2, true, |_| true);
    schedule.open(0);
    schedule.open(1);
    assert_eq!(begun(&mut schedule, names), "ab");
    let stopped = schedule.mark_failed(0);
    assert_eq!(skipped(names, &stopped), "Ec");
    assert!(stopped.iter().all(|skipped| skipped.cause == 0));
    schedule.mark_applied(1);
    assert_eq!(begun(&mut schedule, names), "d");
    schedule.mark_applied(4);
    assert!(schedule.is_over(0) && schedule.is_over(1));
}

#[test]
fn what_does_not_get_ready_stops_only_those_who_wait_for_that() {
    let names = "abc";
    let graph = graph(
        names,
        &[('a', Until::Applied, 'b'), ('a', Until::Ready, 'c')],
    );
    let mut schedule = Schedule::new(&graph, 1, true, |_| true);
    schedule.open(0);
    assert_eq!(begun(&mut schedule, names), "a");
    assert_eq!(schedule.mark_applied(0), Some(Until::Ready));
    assert_eq!(skipped(names, &schedule.mark_failed(0)), "c");
    assert_eq!(begun(&mut schedule, names), "b");
    schedule.mark_applied(1);
    assert!(schedule.is_over(0));
}

#[test]
fn a_part_is_given_up() {
    let names = "abCDE";
    let edges = [
        ('a', Until::Applied, 'b'),
        ('a', Until::Applied, 'D'),
        ('C', Until::Applied, 'D'),
        ('a', Until::Ready, 'E'),
    ];
    let graph = graph(names, &edges);
    let mut schedule = Schedule::new(&graph, 2, true, |_| true);
    schedule.open(0);
    schedule.open(1);
    assert_eq!(begun(&mut schedule, names), "aC");
    assert_eq!(schedule.mark_applied(0), Some(Until::Ready));
    let given_up = schedule.give_up(0);
    assert_eq!(given_up.unready, [0]);
    assert_eq!(given_up.unapplied, [1]);
    assert_eq!(
        skipped(names, &given_up.skipped),
        "E",
        "D needs no more of a than that it was applied"
    );
    assert!(schedule.is_over(0) && !schedule.is_over(1));
    schedule.mark_applied(2);
    assert_eq!(begun(&mut schedule, names), "D");
    schedule.mark_applied(3);
    assert!(schedule.is_over(1));
}
