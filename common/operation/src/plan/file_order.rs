//! The order of numbered files: `10-dns.yaml` is installed before `20-web.yaml` begins.

use common::api::names::InstallationName;

use super::planned::{PlannedInstallation, build_graph};
use crate::context::Context;
use crate::event::Finding;
use crate::resolve::resolved::Resolved;

/// The numbers of a command's add-ons.
#[derive(Debug)]
pub(super) struct Numbers(Vec<(u64, InstallationName)>);

impl Numbers {
    pub(super) fn from_resolved<'a>(due: impl Iterator<Item = &'a Resolved>) -> Self {
        let numbered = due.filter_map(|resolved| Some((number(resolved)?, resolved.name.clone())));
        Self(numbered.collect())
    }

    /// Returns the add-ons with a lower number.
    pub(super) fn lower_numbered(&self, resolved: &Resolved) -> Vec<InstallationName> {
        let Some(number) = number(resolved) else {
            return Vec::new();
        };
        let lower = self.0.iter().filter(|(other, _)| *other < number);
        lower.map(|(_, name)| name.clone()).collect()
    }

    /// Drops this order if the objects need another one, which takes precedence.
    pub(super) fn check(&self, ctx: &Context, installations: &mut [PlannedInstallation]) {
        if self.0.is_empty() || build_graph(installations).is_ok() {
            return;
        }
        for planned in installations {
            let others = &mut planned.plan.requires;
            others.retain(|other| !self.0.iter().any(|(_, numbered)| numbered == other));
        }
        ctx.report_finding(Finding::NumbersIgnored);
    }
}

fn number(resolved: &Resolved) -> Option<u64> {
    resolved.given.as_ref()?.number
}
