//! The applies of one command, as the proxy saw them.

use addons_tests::chaos::rig::Rig;
use addons_tests::proxy::Seen;
use anyhow::{Context as _, Result, ensure};

/// The applies since a moment, in the order in which they came.
#[derive(Debug)]
pub struct Sent(Vec<Apply>);

/// One object that was applied.
#[derive(Clone, Debug)]
struct Apply {
    /// `configmaps/NAME`, and `NAMESPACE/configmaps/NAME` where it is not the stage's.
    object: String,
    /// How many requests had come before.
    came: usize,
    /// How many had come when it was answered.
    answered: Option<usize>,
}

impl Sent {
    /// Those after the first `before` requests.
    pub fn after(rig: &Rig, before: usize) -> Self {
        let mut applies: Vec<Apply> = Vec::new();
        for (came, seen) in rig.proxy.requests().iter().enumerate().skip(before) {
            let Some(object) = object(seen, &rig.stage.namespace) else {
                continue;
            };
            // An apply that was sent again, by force, is one apply.
            match applies.iter_mut().find(|apply| apply.object == object) {
                Some(apply) => apply.answered = seen.answered,
                None => applies.push(Apply {
                    object,
                    came,
                    answered: seen.answered,
                }),
            }
        }
        Self(applies)
    }

    /// The objects in the order in which their applies came.
    pub fn objects(&self) -> Vec<&str> {
        let objects = self.0.iter().map(|apply| apply.object.as_str());
        objects.collect()
    }

    /// Whether an object was sent.
    pub fn has(&self, object: &str) -> bool {
        self.0.iter().any(|apply| apply.object == object)
    }

    /// That the second was sent after the first was answered.
    pub fn ensure(&self, first: &str, second: &str) -> Result<()> {
        ensure!(
            self.is_before(first, second)?,
            "{second} did not wait for {first}: {:#?}",
            self.0
        );
        Ok(())
    }

    /// Whether the second was sent after the first was answered.
    pub fn is_before(&self, first: &str, second: &str) -> Result<bool> {
        let (first, second) = (self.one(first)?, self.one(second)?);
        Ok(first.answered.is_some_and(|come| come <= second.came))
    }

    /// The most applies that were under way at the same time.
    pub fn most_at_once(&self) -> usize {
        let at = |apply: &Apply| {
            let begun = self.0.iter().filter(|other| other.came <= apply.came);
            begun
                .filter(|other| other.answered.is_none_or(|come| come > apply.came))
                .count()
        };
        self.0.iter().map(at).max().unwrap_or_default()
    }

    fn one(&self, object: &str) -> Result<&Apply> {
        let found = self.0.iter().find(|apply| apply.object == object);
        found.with_context(|| format!("{object} was not sent: {:?}", self.objects()))
    }
}

/// The object of an apply.
fn object(seen: &Seen, home: &str) -> Option<String> {
    let (path, query) = seen.uri.split_once('?')?;
    if seen.method != "PATCH"
        || !query.contains("fieldManager=kubectl-addons.")
        || query.contains("dryRun=")
    {
        return None;
    }
    let steps: Vec<&str> = path.split('/').collect();
    let [.., before, namespace, resource, name] = steps[..] else {
        return None;
    };
    Some(match before {
        "namespaces" if namespace != home => format!("{namespace}/{resource}/{name}"),
        _ => format!("{resource}/{name}"),
    })
}
