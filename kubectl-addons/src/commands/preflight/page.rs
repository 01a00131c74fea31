//! Renders the report as a page, to attach to a change or to paste into an issue.

use addons_advice::preflight::PreflightVerdict;
use common::catalogue::select::ClusterVersions;

use super::report::{PreflightReport, PreflightRow, RiskRow};
use crate::output::html::{self, HtmlPage, Tone};
use crate::output::markdown::MarkdownPage;
use crate::words::preflight as words;

const HEADER: [&str; 5] = ["Verdict", "Name", "Version", "Why", "What to do"];
const RISKS: [&str; 5] = ["Risk", "Object", "Owner", "Why", "What to do"];
/// Titles of the second and the third part.
const IN_THE_WAY: &str = "In the way of the upgrade";
const ORDER: &str = "Order of the upgrades";

/// Renders the report as an HTML page.
pub(super) fn render_html(report: &PreflightReport, to: &ClusterVersions) -> String {
    let rows = &report.items;
    let mut page = HtmlPage::new(&title(to));
    page.text(&format_summary(rows));
    let table = rows.iter().map(|row| html::HtmlRow {
        tone: match row.verdict {
            PreflightVerdict::Fits => Tone::Good,
            PreflightVerdict::Unknown => Tone::New,
            PreflightVerdict::DoesNotFit => Tone::Bad,
        },
        cells: row_cells(row).into(),
    });
    page.table(&HEADER, &table.collect::<Vec<_>>());
    if !report.risks.is_empty() {
        page.section(IN_THE_WAY);
        let table = report.risks.iter().map(|row| html::HtmlRow {
            tone: if row.blocks { Tone::Bad } else { Tone::New },
            cells: risk_cells(row).into(),
        });
        page.table(&RISKS, &table.collect::<Vec<_>>());
    }
    let lines = report.lines();
    if !lines.is_empty() {
        page.section(ORDER);
        lines.iter().for_each(|line| page.text(line));
    }
    page.finish()
}

/// Renders the report as tables in Markdown, as GitHub and GitLab read them.
pub(super) fn render_markdown(report: &PreflightReport, to: &ClusterVersions) -> String {
    let rows = &report.items;
    let mut page = MarkdownPage::new(&title(to));
    page.text(&format_summary(rows));
    page.table(&HEADER, rows.iter().map(row_cells));
    if !report.risks.is_empty() {
        page.heading(IN_THE_WAY);
        page.table(&RISKS, report.risks.iter().map(risk_cells));
    }
    let lines = report.lines();
    if !lines.is_empty() {
        page.heading(ORDER);
        page.list(&lines);
    }
    page.finish()
}

fn risk_cells(row: &RiskRow) -> [String; 5] {
    let object = words::risk::name_object(&row.risk);
    let object = match &row.cluster {
        Some(cluster) => format!("{cluster}: {object}"),
        None => object,
    };
    let owner = row.risk.owner().map(|owner| owner.name.clone());
    [
        words::risk::severity_word(row.blocks).to_owned(),
        object,
        owner.unwrap_or_default(),
        row.why.clone(),
        row.commands.join("; then "),
    ]
}

fn title(to: &ClusterVersions) -> String {
    let version = to.kubernetes.as_ref().map(ToString::to_string);
    format!("Preflight for Kubernetes {}", version.unwrap_or_default())
}

/// Formats a summary: `3 installations: 1 fits, 1 unknown, 1 does not fit`.
fn format_summary(rows: &[PreflightRow]) -> String {
    let installations = match rows.len() {
        0 => return "Nothing is installed.".to_owned(),
        1 => "1 installation".to_owned(),
        count => format!("{count} installations"),
    };
    let counts = [
        PreflightVerdict::Fits,
        PreflightVerdict::Unknown,
        PreflightVerdict::DoesNotFit,
    ]
    .map(|verdict| {
        let count = rows.iter().filter(|row| row.verdict == verdict).count();
        (count > 0).then(|| words::count_verdict(count, verdict))
    });
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    format!("{installations}: {}", counts.join(", "))
}

fn row_cells(row: &PreflightRow) -> [String; 5] {
    let name = match &row.cluster {
        Some(cluster) => format!("{cluster}: {}", row.name),
        None => row.name.clone(),
    };
    [
        words::verdict_words(row.verdict).to_owned(),
        name,
        row.version.clone(),
        row.reasons.join("; "),
        row.fix.clone().unwrap_or_default(),
    ]
}

/// Escapes text for a Markdown cell.
#[cfg(test)]
mod tests {
    use addons_versions::tolerant;
    use common::api::names::InstallationName;

    use super::super::report::BlockedInstallation;
    use super::*;

    fn row(verdict: PreflightVerdict, reasons: &[&str], fix: Option<&str>) -> PreflightRow {
        PreflightRow {
            cluster: None,
            namespace: "kubectl-addons".to_owned(),
            name: "web".to_owned(),
            addon: "web".to_owned(),
            version: "1.0.0".to_owned(),
            verdict,
            reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
            remedy: None,
            apis: Vec::new(),
            writers: Vec::new(),
            fix: fix.map(str::to_owned),
        }
    }

    fn to() -> ClusterVersions {
        ClusterVersions {
            kubernetes: tolerant::parse_kubernetes("1.37").ok(),
            kkp: None,
            profile: None,
        }
    }

    #[test]
    fn a_table_in_markdown() {
        let mut elsewhere = row(PreflightVerdict::Fits, &[], None);
        elsewhere.cluster = Some("east".to_owned());
        let reasons = ["k8sVersion <1.37.0 does not match 1.37.0", "a|b\n`c`"];
        let fix = Some("before the cluster's upgrade: kubectl addons upgrade web@1.1.0");
        let items = vec![elsewhere, row(PreflightVerdict::DoesNotFit, &reasons, fix)];
        let report = PreflightReport {
            items,
            blocked: vec![BlockedInstallation {
                cluster: None,
                installation: InstallationName {
                    namespace: "kubectl-addons".to_owned(),
                    name: "web".to_owned(),
                },
            }],
            ..PreflightReport::default()
        };
        let expected = "## Preflight for Kubernetes 1.37.0

2 installations: 1 fits, 1 does not fit

| Verdict | Name | Version | Why | What to do |
| --- | --- | --- | --- | --- |
| fits | east: web | 1.0.0 |  |  |
| does not fit | web | 1.0.0 | k8sVersion \\<1.37.0 does not match 1.37.0; a\\|b \\`c\\` | before the cluster's upgrade: kubectl addons upgrade web@1.1.0 |

### Order of the upgrades

- blocked: web (namespace kubectl-addons): no version of it fits
";
        assert_eq!(render_markdown(&report, &to()), expected);
        let nothing = "## Preflight for Kubernetes 1.37.0\n\nNothing is installed.\n";
        assert_eq!(render_markdown(&PreflightReport::default(), &to()), nothing);
    }

    #[test]
    fn a_page_says_the_same() {
        let report = PreflightReport {
            items: vec![row(PreflightVerdict::Unknown, &["<b>"], Some("after it"))],
            ..PreflightReport::default()
        };
        let page = render_html(&report, &to());
        for part in [
            "<h1>Preflight for Kubernetes 1.37.0</h1>",
            "<p>1 installation: 1 unknown</p>",
            "<tr class=\"new\"><td>unknown</td><td>web</td><td>1.0.0</td><td>&lt;b&gt;</td><td>after it</td></tr>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
