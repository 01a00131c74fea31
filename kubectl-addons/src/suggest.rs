//! "Did you mean": the nearest name by edit distance.

/// The candidate with the fewest edits, where a third of the letters at most differ.
pub fn did_you_mean<'a>(typed: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let nearest = candidates.iter().map(|name| (distance(typed, name), *name)).min()?;
    let limit = typed.chars().count().max(3) / 3;
    (nearest.0 <= limit).then_some(nearest.1)
}

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let mut cost = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            if i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x) {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name() {
        let names = ["prometheus", "metrics-server", "coredns"];
        assert_eq!(did_you_mean("prometeus", &names), Some("prometheus"));
        assert_eq!(did_you_mean("metric-sever", &names), Some("metrics-server"));
        assert_eq!(did_you_mean("corends", &names), Some("coredns"));
        assert_eq!(did_you_mean("istio", &names), None);
        assert_eq!(did_you_mean("", &[]), None);
    }
}
