//! `--set` and its relatives: one table, read by helm and by us.

use std::fs;

use addons_tests::control_plane::binaries;
use addons_tests::guard::Folder;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::values::set::{Grammar, apply_assignments, parse_assignments};
use serde_json::{Value, json};
use tokio::process::Command;

/// Prints the values.
const VALUES: &str = "values: {{ toJson .Values | quote }}\n";

#[tokio::test]
async fn flags_are_read_as_helm_reads_them() -> Result<()> {
    let mut tally = Tally::new("helm::set");
    let chart = Folder::new("kubectl-addons-set-")?;
    fs::write(
        chart.path().join("Chart.yaml"),
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    )?;
    fs::create_dir(chart.path().join("templates"))?;
    fs::write(chart.path().join("templates/values.yaml"), VALUES)?;
    let rows = typed().into_iter().map(|row| (Grammar::Typed, row));
    let rows = rows.chain(text().into_iter().map(|row| (Grammar::Text, row)));
    let rows = rows.chain(in_json().into_iter().map(|row| (Grammar::Json, row)));
    for (grammar, (flag, expected)) in rows {
        let mut ours = json!({});
        apply_assignments(&mut ours, &parse_assignments(grammar, flag)?, &[])?;
        ensure!(ours == expected, "{flag}: we read {ours}");
        let helms = by_helm(&chart, grammar, flag).await.context(flag)?;
        ensure!(helms == expected, "{flag}: helm reads {helms}");
        tally.ran();
    }
    Ok(())
}

/// What helm makes of a flag.
async fn by_helm(chart: &Folder, grammar: Grammar, flag: &str) -> Result<Value> {
    let name = match grammar {
        Grammar::Typed => "--set",
        Grammar::Text => "--set-string",
        Grammar::Json => "--set-json",
    };
    let mut command = Command::new(binaries::helm()?);
    command.args(["template", "x"]).arg(chart.path());
    let output = command.args([name, flag]).env_clear().output().await?;
    let text = String::from_utf8(output.stdout)?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("values: "));
    let quoted: String = serde_json::from_str(line.context(error)?)?;
    Ok(serde_json::from_str(&quoted)?)
}

fn typed() -> Vec<(&'static str, Value)> {
    vec![
        ("a.b=c", json!({"a": {"b": "c"}})),
        (
            "a=1,b.c=x,b.d=y",
            json!({"a": 1, "b": {"c": "x", "d": "y"}}),
        ),
        ("a=1,", json!({"a": 1})),
        ("a=1, b=2", json!({"a": 1, " b": 2})),
        ("a=", json!({"a": ""})),
        ("a=,b=1", json!({"a": "", "b": 1})),
        ("a= b ", json!({"a": " b "})),
        ("a=b=c", json!({"a": "b=c"})),
        ("a=1,a=2", json!({"a": 2})),
        // Types.
        (
            "a=true,b=FALSE,c=Null,d=nil",
            json!({"a": true, "b": false, "c": null, "d": "nil"}),
        ),
        (
            "a=0,b=-5,c=+5,d=-0",
            json!({"a": 0, "b": -5, "c": 5, "d": 0}),
        ),
        ("a=007,b=-01,c=00", json!({"a": "007", "b": -1, "c": "00"})),
        (
            "a=1.10,b=1.5,c=1e3,d=0x1f,e=1_000",
            json!({"a": "1.10", "b": "1.5", "c": "1e3", "d": "0x1f", "e": "1_000"}),
        ),
        (
            "a=123456,b=9223372036854775808",
            json!({"a": 123_456, "b": "9223372036854775808"}),
        ),
        ("a=\"3\",b='x'", json!({"a": "\"3\"", "b": "'x'"})),
        ("a=yes,b=~", json!({"a": "yes", "b": "~"})),
        // Escapes.
        (r"a=x\,y,b=1", json!({"a": "x,y", "b": 1})),
        (r"a\.b/c.d=x", json!({"a.b/c": {"d": "x"}})),
        (r"a\=b=c\d\\e", json!({"a=b": "cd\\e"})),
        (r"a=\{x\,y}", json!({"a": "{x,y}"})),
        (r"a\[0]=x", json!({"a[0]": "x"})),
        (r"a=\1,b=\true", json!({"a": 1, "b": true})),
        // Lists.
        ("a={x,y}", json!({"a": ["x", "y"]})),
        ("a={1,null,true,1.5}", json!({"a": [1, null, true, "1.5"]})),
        ("a={}", json!({"a": [""]})),
        ("a={1,,2},b=3", json!({"a": [1, "", 2], "b": 3})),
        ("a={x}b=3", json!({"a": ["x"], "b": 3})),
        ("a={x=1,y.z}", json!({"a": ["x=1", "y.z"]})),
        (r"a={x\,y,\}}", json!({"a": ["x,y", "}"]})),
        ("a=x{y},b=2", json!({"a": "x{y}", "b": 2})),
        // Indices.
        ("a[0]=x", json!({"a": ["x"]})),
        ("a[2]=x,a[0]=y", json!({"a": ["y", null, "x"]})),
        (
            "a[0].b=1,a[0].c=2,a[1].b=3",
            json!({"a": [{"b": 1, "c": 2}, {"b": 3}]}),
        ),
        (
            "a.b[1].c.d={x}",
            json!({"a": {"b": [null, {"c": {"d": ["x"]}}]}}),
        ),
        ("a[1][1]=x,a[1][0]=y", json!({"a": [null, ["y", "x"]]})),
        ("a[0]={x,y}", json!({"a": [["x", "y"]]})),
        ("a[0]=", json!({"a": [""]})),
        ("a={x,y},a[1]=z", json!({"a": ["x", "z"]})),
        // Only below an index does a map replace something else.
        ("a[0]=1,a[0].b=2", json!({"a": [{"b": 2}]})),
        ("a[+1]=x", json!({"a": [null, "x"]})),
        ("ключ.日本=é", json!({"ключ": {"日本": "é"}})),
    ]
}

fn text() -> Vec<(&'static str, Value)> {
    vec![
        (
            "a=1,b=true,c=null",
            json!({"a": "1", "b": "true", "c": "null"}),
        ),
        ("a={1,true}", json!({"a": ["1", "true"]})),
        (r"a[1].b=1\,2", json!({"a": [null, {"b": "1,2"}]})),
        ("a=", json!({"a": ""})),
    ]
}

fn in_json() -> Vec<(&'static str, Value)> {
    vec![
        (
            "a=[1,\"x,y\"] ,b={\"c\":null}",
            json!({"a": [1, "x,y"], "b": {"c": null}}),
        ),
        (
            "a.b[1]=\"x\",c=true",
            json!({"a": {"b": [null, "x"]}, "c": true}),
        ),
        ("a=,b= 7", json!({"a": null, "b": 7})),
        ("a=1 b=2", json!({"a": 1, "b": 2})),
    ]
}
