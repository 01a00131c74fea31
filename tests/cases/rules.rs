//! Every rule for catalogues, installations and core sets as raw requests to a real API server with the webhook: what is denied, with which code
//! and in which words, and the neighbour that is allowed. The rows are in `data/rules`; rules for namespaces are in `bypass`.

mod race;
mod row;
mod world;

use std::collections::BTreeMap;

use addons_tests::raw::Answer;
use addons_tests::scene::DENIED;
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

use self::row::{CANARY, Layer, Row};
use self::world::World;

const DENIED_CORE_SETS: &str =
    r#"admission webhook "core-sets.kubectl-addons.dev" denied the request: "#;

/// One cluster for all of them: each request is a dry run.
#[tokio::test]
async fn each_rule_denies_what_it_names_and_nothing_beside_it() -> Result<()> {
    let mut tally = Tally::new("rules::table");
    let world = World::new().await?;
    let rows = row::rows()?;
    let mut wrong = Vec::new();
    let mut canaries = 0;
    for row in &rows {
        for (attempt, is_denied) in row.attempts() {
            let answer = world.attempt(attempt).await?;
            let expected = row.expected(is_denied);
            if answer != expected {
                wrong.push(format!(
                    "{}: {answer:#?}\ninstead of {expected:#?}",
                    row.says
                ));
            }
            // Values are judged by path and rule, and never echoed (semantics 10).
            ensure!(
                !format!("{answer:?}").contains(CANARY),
                "{}: {answer:?}",
                row.says
            );
            canaries += usize::from(attempt.body().to_string().contains(CANARY));
            tally.ran();
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(
        canaries > 10,
        "only {canaries} requests hold a value that must not be echoed"
    );
    counted(&world, &rows).await
}

impl Row {
    /// What the API server answers.
    fn expected(&self, is_denied: bool) -> Answer {
        match &self.denied {
            Some(denied) if is_denied => {
                let message = match denied.by {
                    Layer::Webhook => format!("{DENIED}{}", denied.message.trim_end()),
                    Layer::CoreSets => format!("{DENIED_CORE_SETS}{}", denied.message.trim_end()),
                    Layer::Schema => denied.message.trim_end().to_owned(),
                };
                Answer {
                    refusal: Some((denied.code, message)),
                    warnings: denied.warnings.clone(),
                }
            }
            _ => Answer {
                refusal: None,
                warnings: self.warnings.clone(),
            },
        }
    }
}

/// The webhook counts each denial under the name of its rule, as often as there are rows of it.
async fn counted(world: &World, rows: &[Row]) -> Result<()> {
    let mut expected: BTreeMap<&str, usize> = BTreeMap::new();
    let denied = rows.iter().filter_map(|row| row.denied.as_ref());
    for denied in denied.filter(|denied| denied.by != Layer::Schema) {
        for rule in &denied.rules {
            *expected.entry(rule).or_default() += 1;
        }
    }
    let metrics = world.metrics().await?;
    for (rule, count) in expected {
        let line = format!("addons_webhook_denials_total{{rule=\"{rule}\"}} ");
        let mut lines = metrics.lines();
        let found = lines.find_map(|one| one.strip_prefix(&line));
        let found: usize = found.unwrap_or("0").parse()?;
        // The probe of the harness and retries of the API server count as well.
        ensure!(
            found >= count,
            "{rule}: {found} denials instead of {count}\n{metrics}"
        );
    }
    Ok(())
}
