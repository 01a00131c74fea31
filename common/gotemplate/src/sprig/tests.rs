use serde_json::{Value as Json, json};

use super::SPRIG;
use crate::function::Function;
use crate::limits::TemplateLimits;
use crate::value::Value;
use crate::{TemplateError, TemplateFile, TemplateOptions};

fn rendered_within(
    limits: TemplateLimits,
    text: &str,
    data: &Json,
) -> Result<String, TemplateError> {
    let options = TemplateOptions {
        functions: SPRIG,
        limits,
        ..TemplateOptions::default()
    };
    let template = TemplateFile { name: "t", text };
    let rendered = crate::render(&[template], Value::try_from(data).unwrap(), &options)?;
    Ok(rendered.text)
}

fn rendered(text: &str, data: &Json) -> Result<String, TemplateError> {
    let limits = TemplateLimits {
        bytes: 64 << 20,
        ..TemplateLimits::default()
    };
    rendered_within(limits, text, data)
}

fn refusal(text: &str) -> String {
    match rendered(text, &json!({"text": "x".repeat(1 << 16)})) {
        Ok(made) => panic!("{text}: {} bytes instead of an error", made.len()),
        Err(error) => error.to_string(),
    }
}

/// The names in `functions.go` of sprig 3.3.0.
#[test]
fn no_function_of_sprig_is_unknown() {
    let names = "\
        abbrev abbrevboth add add1 add1f addf adler32sum ago all any append atoi b32dec b32enc b64dec b64enc base bcrypt \
        biggest buildCustomCert camelcase cat ceil chunk clean coalesce compact concat contains date dateInZone dateModify \
        date_in_zone date_modify decryptAES deepCopy deepEqual default derivePassword dict dig dir div divf duration \
        durationRound empty encryptAES env expandenv ext fail first float64 floor fromJson genCA genCAWithKey \
        genPrivateKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey get getHostByName has \
        hasKey hasPrefix hasSuffix hello htmlDate htmlDateInZone htpasswd indent initial initials int int64 isAbs join \
        kebabcase keys kindIs kindOf last list lower max maxf merge mergeOverwrite min minf mod mul mulf mustAppend \
        mustChunk mustCompact mustDateModify mustDeepCopy mustFirst mustFromJson mustHas mustInitial mustLast mustMerge \
        mustMergeOverwrite mustPrepend mustPush mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll \
        mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse mustSlice mustToDate mustToJson mustToPrettyJson \
        mustToRawJson mustUniq mustWithout must_date_modify nindent nospace now omit osBase osClean osDir osExt osIsAbs \
        pick pluck plural prepend push quote randAlpha randAlphaNum randAscii randBytes randInt randNumeric regexFind \
        regexFindAll regexMatch regexQuoteMeta regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace rest \
        reverse round semver semverCompare seq set sha1sum sha256sum sha512sum shuffle slice snakecase sortAlpha split \
        splitList splitn squote sub subf substr swapcase ternary title toDate toDecimal toJson toPrettyJson toRawJson \
        toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple typeIs typeIsLike typeOf uniq \
        unixEpoch unset until untilStep untitle upper urlJoin urlParse uuidv4 values without wrap wrapWith";
    let names_of = |function: &Function<'static>| [&[function.name], function.aliases].concat();
    let mut known: Vec<_> = SPRIG.concat().iter().flat_map(names_of).collect();
    known.sort_unstable();
    assert_eq!(known, Vec::from_iter(names.split_whitespace()));
}

#[test]
fn what_is_impure_is_refused_with_a_reason() {
    for (text, reason) in [
        ("{{ now }}", "the clock"),
        ("{{ date \"2006\" 0 }}", "the clock"),
        ("{{ randAlphaNum 5 }}", "at every rendering"),
        ("{{ uuidv4 }}", "at every rendering"),
        ("{{ genCA \"x\" 365 }}", "cert-manager"),
        ("{{ env \"HOME\" }}", "the environment"),
        ("{{ getHostByName \"x\" }}", "the network"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(reason), "{refusal}");
    }
    let not_called = rendered("{{ if false }}{{ now }}{{ end }}ok", &json!({}));
    assert_eq!(not_called.ok().as_deref(), Some("ok"));
}

#[test]
fn nothing_grows_without_end() {
    for text in [
        "{{ repeat 1000000000000 \"x\" }}",
        "{{ $x := .text }}{{ range until 40 }}{{ $x = cat $x $x }}{{ end }}",
        "{{ $x := .text }}{{ range until 9 }}{{ $x = replace \"x\" (repeat 99 \"x\") $x }}{{ end }}",
        "{{ replace \"\" .text .text }}",
        "{{ regexReplaceAll \"x\" .text (repeat 4096 \"y\") }}{{ regexReplaceAll \"x\" .text .text }}",
        "{{ indent 9223372036854775807 \"x\" }}",
        "{{ nindent 100000 (repeat 100000 \"\\n\") }}",
        "{{ wrapWith 1 .text .text }}",
        "{{ join .text (until 100000) }}",
        "{{ until 9223372036854775807 }}",
        "{{ untilStep -9223372036854775808 9223372036854775807 1 }}",
        "{{ seq 9000000000000000000 }}",
        "{{ $l := until 100000 }}{{ range until 40 }}{{ $l = concat $l $l }}{{ end }}",
        "{{ uniq (until 100000) }}",
        "{{ $l := list }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ deepCopy $l | len }}",
        "{{ $l := list }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l | len }}",
        "{{ $d := dict }}{{ range until 40 }}{{ $d = dict \"a\" $d \"b\" $d }}{{ end }}{{ merge $d (deepCopy $d) | len }}",
        "{{ fromJson (repeat 30000000 \"[\") }}",
        "{{ mustRegexMatch \"((((x{1,100}){1,100}){1,100}){1,100})\" .text }}",
        "{{ mustRegexMatch (repeat 100000 \"(\") .text }}",
    ] {
        refusal(text);
    }
}

/// Each template makes 40 times 50 kB, which is more than the allowed 1 MiB.
#[test]
fn copies_of_long_texts_count() {
    let limits = TemplateLimits {
        bytes: 1 << 20,
        ..TemplateLimits::default()
    };
    let data = json!({"s": "a".repeat(50_000), "json": format!("[{:?}]", "a".repeat(50_000))});
    let many = |kept: &str| {
        format!(
            "{{{{ $d := dict }}}}{{{{ range until 40 }}}}{{{{ $_ := set $d (toString .) ({kept}) }}}}{{{{ end }}}}"
        )
    };
    let all = |function: &str| {
        let texts = "$.s ".repeat(40);
        format!("{{{{ {function} {texts} | len }}}}")
    };
    for text in [
        many("splitList \",\" $.s"),
        many("split \",\" $.s"),
        many("splitn \",\" 2 $.s"),
        many("dict $.s 1"),
        many("set (dict) $.s 1"),
        many("fromJson $.json"),
        many("urlParse $.s"),
        many("regexFindAll \"a+\" $.s -1"),
        many("regexSplit \",\" $.s -1"),
        all("list").replace("| len", "| toStrings | len"),
        all("list").replace("| len", "| join \",\" | len"),
        all("cat"),
    ] {
        let error = refusal_within(limits, &text, &data);
        assert!(error.contains("it would make more than"), "{text}: {error}");
    }
}

/// The error of a rendering within `limits`.
fn refusal_within(limits: TemplateLimits, text: &str, data: &Json) -> String {
    match rendered_within(limits, text, data) {
        Ok(made) => panic!("{text}: {} bytes instead of an error", made.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn loops_over_long_texts_and_lists_end() {
    let limits = TemplateLimits {
        work: 1 << 20,
        ..TemplateLimits::default()
    };
    let data = json!({"s": "a".repeat(10_000)});
    for looked in [
        "contains \"b\" $.s",
        "regexMatch \"b\" $.s",
        "has \"b\" $l",
        "without $l \"b\"",
        "uniq $l",
        "compact $l",
        "deepEqual $l $m",
    ] {
        let text = format!(
            "{{{{ $l := until 1000 }}}}{{{{ $m := until 1000 }}}}{{{{ range until 1000 }}}}{{{{ $x := {looked} }}}}{{{{ end }}}}"
        );
        let error = refusal_within(limits, &text, &data);
        assert!(error.contains("read too much"), "{looked}: {error}");
    }
}

/// Results of Go.
#[test]
fn sprig_where_numbers_and_keys_are_odd() {
    for (text, expected) in [
        ("{{ 0x1p-1074 }}", "5e-324"),
        ("{{ float64 \"0x1p-1030\" }}", "8.691694759794e-311"),
        ("{{ duration \"9223372036854775808\" }}", "-1s"),
    ] {
        assert_eq!(rendered(text, &json!({})).unwrap(), expected, "{text}");
    }
    // sprig reads all keys before it looks for the first.
    refusal("{{ dict \"a\" 1 | dig \"b\" 2 \"default\" }}");
}

#[test]
fn dicts_that_hold_themselves() {
    let holds_itself =
        "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ $_ := set $d \"l\" (list $d) }}";
    for action in [
        "{{ toJson $d }}",
        "{{ toPrettyJson $d }}",
        "{{ deepCopy $d }}",
        "{{ toString $d }}",
        "{{ quote $d }}",
        "{{ $e := dict }}{{ $_ := set $e \"d\" $e }}{{ merge $d $e }}",
        "{{ $e := dict }}{{ $_ := set $e \"d\" $e }}{{ deepEqual $d $e }}{{ $e }}",
    ] {
        refusal(&format!("{holds_itself}{action}"));
    }
    let merged = rendered(
        &format!("{holds_itself}{{{{ keys (merge $d $d) }}}}"),
        &json!({}),
    );
    assert!(merged.is_err() || merged.is_ok_and(|text| text == "[d l]"));
}

/// Go would print bytes that are not UTF-8.
#[test]
fn characters_stay_whole() {
    for text in [
        "{{ trunc 1 \"é\" }}",
        "{{ trunc -1 \"é\" }}",
        "{{ substr 0 1 \"é\" }}",
        "{{ abbrev 5 \"aéüöé\" }}",
        "{{ wrapWith 1 \"-\" \"éé\" }}",
        "{{ b64dec \"/w==\" }}",
        "{{ (urlParse \"/%ff\").path }}",
    ] {
        refusal(text);
    }
}

#[test]
fn deep_json_is_refused_and_not_nothing() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let refused = rendered("{{ fromJson .deep }}", &json!({"deep": deep}));
    assert!(refused.is_err());
}

/// serde_json's own value would read this key as raw JSON instead of a map.
#[test]
fn json_is_what_it_looks_like() {
    let text = r#"{"a":{"$serde_json::private::RawValue":"[1]"},"b":[null,true,-1,1.5,"x"]}"#;
    let read = rendered("{{ fromJson .text | toJson }}", &json!({"text": text}));
    assert_eq!(read.unwrap(), text);
}
