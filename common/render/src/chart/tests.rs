use serde_json::json;

use super::*;
use crate::package::PackagedFile;

fn package(files: &[(&str, &str)]) -> Package {
    let files = files.iter().map(|(path, text)| PackagedFile {
        path: (*path).to_owned(),
        bytes: text.as_bytes().to_vec(),
    });
    Package::from_folder(files.collect()).unwrap()
}

#[test]
fn a_chart_is_read() {
    let package = package(&[
        (
            "Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.10\ndependencies:\n- {name: db, repository: 'https://a.example', version: 1.x}\n",
        ),
        ("Chart.lock", ""),
        (
            "values.yaml",
            "# nothing\nreplicas: 1\nreplicas: 2\nratio: 1.5\n",
        ),
    ]);
    let chart = Chart::read(&package).unwrap();
    assert_eq!(
        (chart.name.as_str(), chart.version.as_str()),
        ("web", "1.10")
    );
    assert_eq!(chart.values, json!({"replicas": 2, "ratio": 1.5}));
    let missing = chart
        .missing_dependencies(&package, &BTreeSet::new())
        .unwrap();
    let remote = DependencyOrigin::Remote("https://a.example".to_owned());
    assert_eq!(missing, [(&chart.dependencies[0], remote)]);
}

#[test]
fn what_is_no_chart_says_what_it_lacks() {
    for (files, expected) in [
        (
            &[("README.md", "")][..],
            "there is no Chart.yaml at its root: a chart is a folder with Chart.yaml, or a .tgz of one",
        ),
        (
            &[
                ("deploy/web/Chart.yaml", ""),
                ("deploy/web/charts/db/Chart.yaml", ""),
            ],
            "there is no Chart.yaml at its root; there is one in deploy/web: name that folder as the path of the source",
        ),
        (
            &[("Chart.yaml", "version: 1.0.0\n")],
            "Chart.yaml: name is missing, which every chart has",
        ),
        (
            &[("Chart.yaml", "name: web\n")],
            "Chart.yaml: version is missing, which every chart has",
        ),
        (
            &[("Chart.yaml", "name: ../web\nversion: 1.0.0\n")],
            "Chart.yaml: \"../web\" is not a valid name: it is a path",
        ),
        (
            &[("Chart.yaml", "name: [web\n")],
            "Chart.yaml:1: cannot be read as YAML",
        ),
        (
            &[("Chart.yaml", "- name\n")],
            "Chart.yaml: it is not a map, as in `name: value`",
        ),
        (
            &[("Chart.yaml", "name: lib\nversion: 1.0.0\ntype: library\n")],
            "lib is a library chart (type: library in Chart.yaml), which has nothing to install: name the chart that uses it",
        ),
        (
            &[
                ("Chart.yaml", "name: web\nversion: 1.0.0\n"),
                ("values.yaml", "a\n"),
            ],
            "values.yaml: it is not a map, as in `name: value`",
        ),
    ] {
        let error = Chart::read(&package(files)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn dependencies_are_found_or_refused() {
    let files = |repository: &str| {
        let about = format!(
            "name: web\nversion: 1.0.0\ndependencies:\n- {{name: db, repository: '{repository}'}}\n"
        );
        vec![
            ("Chart.yaml".to_owned(), about),
            (
                "parts/db/Chart.yaml".to_owned(),
                "name: db\nversion: 1.0.0\n".to_owned(),
            ),
        ]
    };
    for (repository, more, expected) in [
        ("file://parts/db", "x", Ok("Folder(\"parts/db\")")),
        ("file://./parts/x/../db/", "x", Ok("Folder(\"parts/db\")")),
        ("file://../db", "x", Err("lies outside of the chart")),
        ("file:///etc", "x", Err("lies outside of the chart")),
        (
            "file://parts/../../db",
            "x",
            Err("lies outside of the chart"),
        ),
        (
            "file://parts",
            "x",
            Err("there is no chart in file://parts"),
        ),
        ("https://a.example", "x", Err("there is no Chart.lock")),
        (
            "https://a.example",
            "Chart.lock",
            Ok("Remote(\"https://a.example\")"),
        ),
        (
            "oci://a.example/x",
            "requirements.lock",
            Ok("Remote(\"oci://a.example/x\")"),
        ),
        (
            "https://u:p@a.example",
            "Chart.lock",
            Err("holds a user name or password"),
        ),
        ("@stable", "Chart.lock", Err("only its author's helm knows")),
        (
            "alias:stable",
            "Chart.lock",
            Err("only its author's helm knows"),
        ),
        ("ftp://a.example", "Chart.lock", Err("is not a repository")),
        ("", "Chart.lock", Err("it has no repository")),
        // The name of an archive does not say what is in it.
        ("", "charts/db-1.0.0.tgz", Err("it has no repository")),
        ("", "charts/anything/Chart.yaml", Ok("")),
        (
            "",
            "charts/anything/charts/db/Chart.yaml",
            Err("it has no repository"),
        ),
    ] {
        let mut all = files(repository);
        all.push((more.to_owned(), "name: db\n".to_owned()));
        let all: Vec<(&str, &str)> = all.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let package = package(&all);
        let chart = Chart::read(&package).unwrap();
        let archived = BTreeSet::from(["db".to_owned()]);
        assert_eq!(
            chart.missing_dependencies(&package, &archived),
            Ok(Vec::new())
        );
        match (
            chart.missing_dependencies(&package, &BTreeSet::new()),
            expected,
        ) {
            (Ok(missing), Ok(origin)) => {
                let found: Vec<String> = missing.iter().map(|(_, o)| format!("{o:?}")).collect();
                assert_eq!(found.join(""), origin, "{repository} {more}");
            }
            (Err(error), Err(words)) => {
                let text = error.to_string();
                assert!(
                    text.contains(words) && !text.contains("u:p"),
                    "{repository}: {text}"
                );
            }
            (found, _) => panic!("{repository} {more}: {found:?}"),
        }
    }
}

#[test]
fn what_was_taken_away_is_given_as_null() {
    let defaults = json!({"a": {"b": 1, "c": 2}, "list": [1], "gone": {"x": 1}, "none": null});
    let merged = json!({"a": {"b": 1, "d": 3}, "list": [2], "new": {"y": 1}});
    assert_eq!(
        overrides(&defaults, &merged),
        json!({"a": {"b": 1, "c": null, "d": 3}, "list": [2], "new": {"y": 1}, "gone": null})
    );
    assert_eq!(
        overrides(&json!({"a": 1}), &json!({"a": {"b": 1}})),
        json!({"a": {"b": 1}})
    );
}
